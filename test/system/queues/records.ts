import { expect, it } from "vitest";
import { metricsText } from "@holdfast/testing/api/metrics-text.ts";
import { parseExposition } from "@holdfast/testing/api/parse-exposition.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { isExhaustive, type QueuesUnderTest } from "./queues-under-test.ts";

/** Records about queues and their messages besides the messages themselves. */
export function recordCases(fixture: QueuesUnderTest): void {
  const started = async (path: string, body: object) =>
    fixture.resultOf(
      `/tasks/${expectStatus(await fixture.platform.rest.post<{ task_id: string }>(path, body), 202).json.task_id}`,
    );

  it("are in the audit log with changes of all their messages, and not with each message", async () => {
    await fixture.create("audited");
    await fixture.enqueue("audited", [{ n: 1 }, { n: 2 }]);
    await fixture.ack("audited", await fixture.claim("audited", {}));
    expect(await started(fixture.path("/audited/purge"), {})).toEqual({ messages: 1 });
    expect(await started(fixture.path("/audited/dead/redrive"), {})).toEqual({ messages: 0 });
    const path = `/audit-log?object=${fixture.orders.service.id}&limit=100`;
    const actions = await waitUntil("the changes are in the audit log", async () => {
      const found = await fixture.platform.rest.get<{ entries: { action: string; result: string }[] }>(path);
      // Refused calls are in it too, with messages or not.
      const done = expectStatus(found, 200).json.entries.filter(({ result }) => result !== "refused");
      const names = done.map(({ action }) => action);
      const ofQueues = new Set(names.filter((action) => action.startsWith("queue.")));
      return ["queue.create", "queue.purge", "queue.redrive"].every((action) => ofQueues.has(action)) && ofQueues;
    });
    const known = ["create", "update", "delete", "purge", "purge-dead", "redrive"].map((verb) => `queue.${verb}`);
    expect([...actions].filter((action) => !known.includes(action))).toEqual([]);
  });

  it("are in the metrics of their service: messages ready, in flight and dead, and the oldest one's age", async () => {
    const { id } = fixture.orders.service;
    const readMetrics = async () => {
      const samples = parseExposition(await metricsText(fixture.platform, `/managed-services/${id}/metrics/export`));
      const valueOf = (name: string) => samples.find((sample) => sample.name === `holdfast_queue_${name}`)?.value ?? -1;
      const [ready, inflight, dead] = ["ready_messages", "inflight_messages", "dead_messages"].map(valueOf);
      return { ready, inflight, dead, oldest: valueOf("oldest_age_seconds") };
    };
    await fixture.create("measured", { max_attempts: 1 });
    await fixture.enqueue(
      "measured",
      Array.from({ length: 5 }, (_, n) => ({ n })),
    );
    const [poisoned] = await fixture.claim("measured", {});
    await fixture.settle("measured", "nack", [{ receipt: poisoned?.receipt }]);
    // The claim that moves it to the dead letters takes another one.
    const claimed = await fixture.claim("measured", { visibility_timeout_seconds: 3600 });
    expect(claimed).toHaveLength(1);
    const client = await fixture.connect();
    const counted = async () =>
      (
        await client.query<{ ready: number; inflight: number; dead: number }>(`SELECT
          count(*) FILTER (WHERE visible_at <= now() AND attempt_count < max_attempts)::int AS ready,
          count(*) FILTER (WHERE visible_at > now() AND claimed_by IS NOT NULL)::int AS inflight,
          (SELECT count(*)::int FROM mdb_queue.dead_messages) AS dead FROM mdb_queue.messages`)
      ).rows[0];
    await waitUntil(
      "they are as in the tables",
      async () => {
        const { oldest, ...figures } = await readMetrics();
        return oldest > 0 && JSON.stringify(figures) === JSON.stringify(await counted());
      },
      { describe: async () => JSON.stringify([await readMetrics(), await counted()]) },
    );
    expect((await counted())?.dead).toBeGreaterThan(0);
    await client.end();
    await fixture.ack("measured", claimed);
  });

  it("report the session whose transaction slows them down", async () => {
    await fixture.create("slow");
    const old = await fixture.connect();
    await old.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
    const pid = (await old.query<{ pid: number }>("SELECT pg_backend_pid() AS pid")).rows[0]?.pid;
    const { oldest_snapshot: snapshot } = await started(fixture.path("/slow/stats"), {});
    expect(snapshot).toMatchObject({ holder: expect.stringContaining(`process ${pid},`) });
    await old.end();
  });

  it("accept a repeated deletion until they are deleted", async () => {
    await fixture.create("twice");
    const open = await fixture.connect();
    await open.query("BEGIN");
    await open.query("SELECT mdb_queue.enqueue('twice', '{}')");
    for (let n = 0; n < 2; n += 1) {
      const { json } = expectStatus(
        await fixture.platform.rest.delete<{ status: string }>(fixture.path("/twice")),
        202,
      );
      expect(json.status).toBe("Deprovisioning");
    }
    const refused = await fixture.post("twice", [{ n: 1 }]);
    expect([refused.status, refused.json]).toMatchObject([409, { code: "queue_not_active" }]);
    await open.query("COMMIT");
    await open.end();
    await waitUntil(
      "it is absent",
      async () => (await fixture.platform.rest.delete(fixture.path("/twice"))).status === 404,
    );
  });
}

/** The last case, because it stops processes that all other cases need. */
export function outageCases(fixture: QueuesUnderTest): void {
  it.runIf(isExhaustive)("are swept and processed by SQL while no controller runs", async () => {
    await fixture.create("alone", { max_attempts: 1 });
    const client = await fixture.connect();
    await fixture.platform.killControlPlane();
    await client.query("SELECT mdb_queue.enqueue('alone', '{}')");
    const claimed = await client.query<{ id: string }>("SELECT id FROM mdb_queue.claim('alone', 'w', 1, 1)");
    expect(claimed.rowCount).toBe(1);
    const dead = "SELECT FROM mdb_queue.dead_messages WHERE queue_name = 'alone' AND id = $1";
    await waitUntil(
      "it is buried by its agent",
      async () => (await client.query(dead, [claimed.rows[0]?.id])).rowCount === 1,
      { withinMs: 150_000, everyMs: 500 },
    );
    await client.end();
  });
}
