import { expect, it } from "vitest";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { startWebhookReceiver } from "@holdfast/testing/servers/webhook-receiver.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { QueuesUnderTest } from "./queues-under-test.ts";

const types = ["queue.active", "queue.failed", "queue.deleted"];

interface EventJson {
  readonly event_type: string;
  readonly data: { readonly queue_name?: string; readonly error_message?: string };
}

/** Events of queues for webhooks. */
export function eventCases(fixture: QueuesUnderTest): void {
  it("send their events to webhooks that name these, and to no other", async () => {
    const [named, all] = [await startWebhookReceiver(), await startWebhookReceiver()];
    const eventsAt = ({ received }: typeof all) => received.map(({ body }) => JSON.parse(body) as EventJson);
    const eventOf = (type: string, queue: string) =>
      waitUntil(`${type} of ${queue} arrives`, () =>
        eventsAt(named).find(({ event_type, data }) => event_type === type && data.queue_name === queue),
      );
    const ids: string[] = [];
    try {
      for (const body of [{ url: named.url, events: types }, { url: all.url }])
        ids.push(expectStatus(await fixture.platform.rest.post<{ id: string }>("/webhooks", body), 201).json.id);

      await fixture.create("told");
      await eventOf("queue.active", "told");
      expectStatus(await fixture.platform.rest.delete(fixture.path("/told")), 202);
      await eventOf("queue.deleted", "told");

      // A user created a schema of this name: the platform does not use it.
      const databases = `/managed-services/${fixture.orders.service.id}/databases`;
      expectStatus(await fixture.platform.rest.post(databases, { name: "taken" }), 201);
      const client = await fixture.connect("taken");
      await client.query("CREATE SCHEMA mdb_queue");
      await client.end();
      expectStatus(await fixture.platform.rest.post(fixture.path(), { name: "refused", database_name: "taken" }), 201);
      expect((await eventOf("queue.failed", "refused")).data.error_message).toContain("mdb_queue");
      const failed = await fixture.platform.rest.get(fixture.path("/refused"));
      expect(failed.json).toMatchObject({ status: "Failed", error_message: expect.stringContaining("mdb_queue") });
      expectStatus(await fixture.platform.rest.delete(fixture.path("/refused")), 202);
      await waitUntil("it is rejected again, or absent", async () => {
        const { status, json } = await fixture.platform.rest.get(fixture.path("/refused"));
        return status === 404 || json["status"] === "Failed";
      });

      // Sent after all of them: earlier deliveries to this endpoint have arrived by then.
      expectStatus(await fixture.platform.rest.post(`/webhooks/${ids[1]}/test`), 202);
      const isTest = ({ event_type }: EventJson) => event_type === "webhook.test";
      await waitUntil("the test arrives", () => eventsAt(all).some(isTest));
      expect(eventsAt(all).filter(({ event_type }) => event_type.startsWith("queue."))).toEqual([]);
    } finally {
      for (const id of ids) await fixture.platform.rest.delete(`/webhooks/${id}`);
      await Promise.all([named.close(), all.close()]);
    }
  });
}
