import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { createServices, expectStatus, type Services } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { acceptedBy } from "@holdfast/testing/servers/webhook-verifiers.ts";
import { startWebhookReceiver, type WebhookReceiver } from "@holdfast/testing/servers/webhook-receiver.ts";

interface WebhookJson {
  readonly id: string;
  readonly secret: string;
}

interface EventsJson {
  readonly events: readonly { readonly id: string; readonly event_type: string; readonly data: object }[];
  readonly next_cursor: string;
  readonly has_more: boolean;
}

interface DeliveriesJson {
  readonly deliveries: readonly { readonly event_type: string }[];
}

describe("events and webhooks", () => {
  let platform: Platform;
  let services: Services;
  let receiver: WebhookReceiver;

  beforeAll(async () => {
    platform = await startPlatform({ environment: { HOLDFAST_ALLOW_EGRESS: "127.0.0.0/8" } });
    services = createServices(platform);
    receiver = await startWebhookReceiver();
  });
  afterAll(async () => {
    await receiver?.close();
    await platform?.remove();
  });

  const typesFor = (id: string) =>
    receiver.received
      .map(({ body }) => JSON.parse(body) as { event_type: string; data: { service_id?: string } })
      .filter(({ data }) => data.service_id === id)
      .map(({ event_type }) => event_type);

  it("delivers a service's events, signed, and lists them in order", async () => {
    const { rest } = platform;
    const created = await rest.post<WebhookJson>("/webhooks", { url: receiver.url });
    const { id: webhookId, secret } = expectStatus(created, 201).json;
    expect(created.json).toMatchObject({
      url: `${receiver.url}/`,
      events: null,
      active: true,
      retry_policy: "standard",
      disabled_at: null,
      warning: expect.stringContaining("http://"),
    });
    const { service } = await services.createRunning("told");
    await waitUntil("service.running arrives", () => typesFor(service.id).includes("service.running"));
    expect(await acceptedBy(receiver.received[0], secret)).toContain("octokit, X-Platform-Signature");

    await services.verb(service.id, "stop");
    await services.delete(service.id);
    await services.deleted(service.id);
    await waitUntil("service.deleted arrives", () => typesFor(service.id).includes("service.deleted"));
    const listed = await rest.get<EventsJson>(`/managed-services/${service.id}/events`);
    const types = expectStatus(listed, 200).json.events.map(({ event_type }) => event_type);
    expect(types).toEqual(["service.running", "service.stopped", "service.deleted"]);
    // Each event arrives at least once; only the list guarantees an order.
    await waitUntil("each has arrived", () => types.every((type) => typesFor(service.id).includes(type)));
    expect(types).toEqual(expect.arrayContaining(typesFor(service.id)));

    const first = await rest.get<EventsJson>(`/events?service=${service.id}&limit=1`);
    expect(first.json).toMatchObject({ events: [{ event_type: "service.running" }], has_more: true });
    const rest2 = await rest.get<EventsJson>(`/events?service=${service.id}&cursor=${first.json.next_cursor}`);
    expect(rest2.json).toMatchObject({ events: [{ event_type: "service.stopped" }, {}], has_more: false });
    const deleted = await rest.get<EventsJson>("/events?type=service.deleted&since=2020-01-01T00:00:00Z");
    expect(deleted.json.events).toHaveLength(1);

    const newest = await waitUntil("the attempt is recorded, after its response", async () => {
      const { json } = await rest.get<DeliveriesJson>(`/webhooks/${webhookId}/deliveries`);
      return json.deliveries.find(({ event_type }) => event_type === "service.deleted");
    });
    expect(newest).toMatchObject({ webhook_id: webhookId, attempt: 1, response_status: 200, error_message: null });
    expect((await rest.post(`/webhooks/${webhookId}/test`)).status).toBe(202);
    await waitUntil("the test arrives", () => receiver.received.some(({ body }) => body.includes("webhook.test")));
    expect((await rest.call("DELETE", `/webhooks/${webhookId}`)).status).toBe(204);
    expect((await rest.get(`/webhooks/${webhookId}`)).json).toMatchObject({ code: "webhook_not_found" });
  });

  it("rejects an invalid endpoint with the reason", async () => {
    const { rest } = platform;
    const create = async (body: object) => (await rest.post("/webhooks", body)).json;
    const fault = (code: string) => ({ status: 400, errors: [expect.objectContaining({ code })] });
    expect(await create({ url: "ftp://example.com/" })).toMatchObject(fault("invalid_url"));
    expect(await create({ url: receiver.url, events: ["service.rnning"] })).toMatchObject(fault("unknown_event_type"));
    // One response has the faults of all fields.
    expect(await create({ url: "foo", events: ["service.rnning"] })).toMatchObject({
      status: 400,
      errors: [
        { field: "url", code: "invalid_url" },
        { field: "events[0]", detail: expect.stringContaining("did you mean service.running?") },
      ],
    });
    const inside = [platform.admin.base_url, "http://169.254.169.254/", "http://10.0.0.1/", "http://1.1.1.1:6379/"];
    for (const url of inside) expect(await create({ url })).toMatchObject({ status: 422, code: "target_not_allowed" });
  });

  it("changes an endpoint, and has no more than 20", async () => {
    const { rest } = platform;
    const ids: string[] = [];
    for (let n = 0; n < 20; n += 1) {
      const body = { url: receiver.url, events: [] };
      ids.push(expectStatus(await rest.post<WebhookJson>("/webhooks", body), 201).json.id);
    }
    expect((await rest.post("/webhooks", { url: receiver.url })).json).toMatchObject({
      status: 409,
      code: "webhook_limit_reached",
    });
    const path = `/webhooks/${ids[0]}`;
    const changed = await rest.call("PATCH", path, { body: { events: null, active: false, retry_policy: "extended" } });
    expect(changed.json).toMatchObject({ events: null, active: false, retry_policy: "extended" });
    expect(changed.json).not.toHaveProperty("secret");
    expect((await rest.post(`${path}/test`)).status).toBe(409);
    const rotated = await rest.post<{ secret: string }>(`${path}/rotate-secret`, { overlap_hours: 1 });
    expect(rotated.json).toMatchObject({ secret: expect.stringMatching(/^[0-9a-f]{64}$/) });
    for (const id of ids) expect((await rest.call("DELETE", `/webhooks/${id}`)).status).toBe(204);
  });

  it("delivers after the controller was killed between the change and the delivery", async () => {
    const { rest } = platform;
    let open = false;
    const slowReceiver = await startWebhookReceiver((response) => {
      if (open) response.end();
    });
    try {
      const { id } = expectStatus(await rest.post<WebhookJson>("/webhooks", { url: slowReceiver.url }), 201).json;
      expect((await rest.post(`/webhooks/${id}/test`)).status).toBe(202);
      await waitUntil("the attempt began", () => slowReceiver.received.length > 0);
      for (const pid of platform.processes().controllers) killImmediately(pid);
      open = true;
      await waitUntil("it is delivered again", () => slowReceiver.received.length > 1, { withinMs: 150_000 });
      expect(new Set(slowReceiver.received.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
    } finally {
      await slowReceiver.close();
    }
  });
});
