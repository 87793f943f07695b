import { expect, it } from "vitest";
import { type MessageJson, numbersOf, queuesOf, type ServiceQueues } from "@holdfast/testing/api/service-queues.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { expectStatus, type RunningService } from "@holdfast/testing/platform/services.ts";
import { reserveMillisecond } from "@holdfast/testing/reserve-millisecond.ts";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { isExhaustive, type QueuesUnderTest } from "./queues-under-test.ts";

const wait = { withinMs: 120_000, everyMs: 100 };

/** Queues of data older than the state of requests: of a fork, and of a second in the past. */
export function copyCases(fixture: QueuesUnderTest): void {
  /** Claims at the source: one of an hour and one of a second. */
  let claimed: MessageJson[] = [];
  let taskId = "";
  let fork: RunningService;
  let forked: ServiceQueues;

  const ofSource = () => queuesOf(fixture.platform, fixture.orders.service.id);

  async function created(response: { status: number; text: string; json: unknown }): Promise<RunningService> {
    const { id } = expectStatus(response, 202).json as ServiceJson;
    await fixture.services.settled(id, "Running");
    return fixture.services.open(id);
  }
  const remove = async ({ service }: RunningService) =>
    expectStatus(await fixture.platform.rest.delete(`/managed-services/${service.id}?skip_final_backup=true`), 202);

  it("are in a fork under new ids, each message in its state, without deleted ones", async () => {
    const { rest } = fixture.platform;
    const source = ofSource();
    await source.create("carried");
    await source.create("dying", { max_attempts: 1 });
    await source.create("ending");
    taskId = await source.send("carried", [1, 2, 3, 4, 5]);
    claimed = [
      ...(await source.claim("carried", { visibility_timeout_seconds: 3600 })),
      ...(await source.claim("carried", { visibility_timeout_seconds: 1 })),
    ];
    await source.send("dying", [6]);
    expect(await source.claim("dying", { visibility_timeout_seconds: 1 })).toHaveLength(1);
    const deadIn = async (queues: ServiceQueues) =>
      (await rest.get<{ messages: MessageJson[] }>(queues.path("/dying/dead"))).json.messages;
    await waitUntil(
      "the message is dead",
      async () => {
        await source.claim("dying", {});
        return (await deadIn(source)).length === 1;
      },
      wait,
    );
    // Deleted while a transaction has locked a message for it: the row remains until the transaction ends.
    const locking = await fixture.connect();
    await locking.query("BEGIN");
    await locking.query(`SELECT mdb_queue.enqueue('ending', '{"n": 7}')`);
    expectStatus(await rest.delete(source.path("/ending")), 202);
    const watcher = await fixture.connect();
    const deletedAt = "SELECT deleted_at IS NOT NULL AS is FROM mdb_queue.queues WHERE name = 'ending'";
    await waitUntil("the registry knows", async () => (await watcher.query(deletedAt)).rows[0]?.is === true, wait);
    await watcher.end();
    const backups = `/managed-services/${fixture.orders.service.id}/backups`;
    const backup = expectStatus(await rest.post<{ id: string }>(backups), 202).json;
    const isFinished = async () =>
      (await rest.get<{ status: string }>(`${backups}/${backup.id}`)).json.status === "completed";
    await waitUntil("the backup is completed", isFinished, wait);
    await locking.query("ROLLBACK");
    await locking.end();

    fork = await created(
      await rest.post(`/managed-services/${fixture.orders.service.id}/fork`, { name: "orders-fork" }),
    );
    forked = queuesOf(fixture.platform, fork.service.id);
    await forked.active("carried");
    expect((await forked.active("dying")).max_attempts).toBe(1);
    const known = new Set((await source.list()).map(({ id }) => id));
    for (const { id } of await forked.list()) expect(known).not.toContain(id);
    expect(await forked.peek("carried")).toHaveLength(5);
    expect((await forked.peek("carried"))[0]).toMatchObject({ id: claimed[0]?.id, state: "inflight" });
    expect(numbersOf(await deadIn(forked))).toEqual([6]);

    const client = await openPostgresql(fixture.platform, fork.connection, { password: fork.password });
    const purged = "SELECT purged_at IS NOT NULL AS is FROM mdb_queue.queues WHERE name = 'ending'";
    await waitUntil("the deleted one is absent", async () => (await client.query(purged)).rows[0]?.is === true, wait);
    await client.end();
    expect((await forked.list()).map(({ name }) => name)).not.toContain("ending");
    await forked.create("ending");
    expect(await forked.peek("ending")).toEqual([]);
  }, 120_000);

  it("have no task and no receipt of the source", async () => {
    const source = ofSource();
    for (const rest of [`/carried/messages?task_id=${taskId}`, `/carried/stats?task_id=${taskId}`])
      expect((await fixture.platform.rest.get(forked.path(rest))).json["code"]).toBe("task_not_found");
    const refused = await forked.ack("carried", claimed);
    expect([refused.status, refused.json]).toMatchObject([400, { code: "invalid_request" }]);
    // The claim of one second expires here as at the source; the claim of one hour expires in neither.
    const found: MessageJson[] = [];
    await waitUntil(
      "all but one were claimed",
      async () => found.push(...(await forked.claim("carried", { max: 10, visibility_timeout_seconds: 3600 }))) === 4,
      wait,
    );
    expect(numbersOf(found)).toEqual([2, 3, 4, 5]);
    expect((await forked.ack("carried", found)).json).toMatchObject({ lost: [] });
    expect(numbersOf(await forked.peek("carried"))).toEqual([1]);
    expect(await source.peek("carried")).toHaveLength(5);
    expect((await source.ack("carried", claimed.slice(0, 1))).json).toMatchObject({ lost: [] });
    await remove(fork);
  });

  it.runIf(isExhaustive)(
    "are as they were at a second between backups, with their claimed messages",
    async () => {
      const { id } = fixture.orders.service;
      const source = ofSource();
      const restorable = async () => (await fixture.services.get(id)).backups?.restorable ?? null;
      await waitUntil("the log continues from a base", async () => (await restorable()) !== null, wait);
      await source.create("moments");
      await source.send("moments", [1, 2, 3]);
      const [first] = await source.claim("moments", { visibility_timeout_seconds: 3600 });
      const point = new Date(await reserveMillisecond()).toISOString();
      if (first === undefined) throw new Error("nothing was claimed");
      expect((await source.ack("moments", [first])).json.lost).toEqual([]);
      expect((await source.ack("moments", await source.claim("moments", { max: 10 }))).json.done).toHaveLength(2);
      await waitUntil("it is durable", async () => ((await restorable())?.to ?? "") > point, wait);
      const body = { restore_point: point, target_service_name: "orders-then" };
      const earlier = await created(await fixture.platform.rest.post(`/managed-services/${id}/backups/restore`, body));
      const restored = queuesOf(fixture.platform, earlier.service.id);
      await restored.active("moments");
      expect((await restored.peek("moments")).map(({ state, payload }) => [payload.n, state])).toEqual([
        [1, "inflight"],
        [2, "ready"],
        [3, "ready"],
      ]);
      expect((await restored.ack("moments", [first])).status).toBe(400);
      expect(numbersOf(await restored.claim("moments", { max: 10 }))).toEqual([2, 3]);
      expect(await source.peek("moments")).toEqual([]);
      await remove(earlier);
    },
    120_000,
  );
}
