import { expect, it } from "vitest";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { isExhaustive, type QueuesUnderTest } from "./queues-under-test.ts";

/** Queues whose database is changed by its users. */
export function databaseCases(fixture: QueuesUnderTest): void {
  /** Idle sessions of queues block the statement for some seconds. */
  async function change(statement: string): Promise<void> {
    const client = await fixture.connect();
    await waitUntil(statement, async () => (await client.query(statement), true), { everyMs: 200 });
    await client.end();
  }

  it.runIf(isExhaustive)("follow a renamed database, and fail with a dropped one", async () => {
    const databases = `/managed-services/${fixture.orders.service.id}/databases`;
    expectStatus(await fixture.platform.rest.post(databases, { name: "moving" }), 201);
    await fixture.create("movable", { database_name: "moving" });
    await fixture.enqueue("movable", [{ n: 1 }]);
    /** The queue once it has this value; each request to it makes the platform check that its database is in place. */
    const becomes = (field: string, value: string) =>
      waitUntil(`its ${field} is ${value}`, async () => {
        await fixture.platform.rest.get(fixture.path("/movable/messages"));
        const { json } = await fixture.platform.rest.get(fixture.path("/movable"));
        return json[field] === value ? json : undefined;
      });

    await change("ALTER DATABASE moving RENAME TO moved");
    expect(await becomes("database_name", "moved")).toMatchObject({ status: "Active" });
    expect((await fixture.claim("movable", {})).map(({ payload }) => payload)).toEqual([{ n: 1 }]);

    await change("DROP DATABASE moved");
    expect(await becomes("status", "Failed")).toMatchObject({ error_message: expect.stringContaining("moved") });
    expectStatus(await fixture.platform.rest.delete(fixture.path("/movable")), 202);
    await waitUntil(
      "it is absent",
      async () => (await fixture.platform.rest.get(fixture.path("/movable"))).status === 404,
    );
  });
}
