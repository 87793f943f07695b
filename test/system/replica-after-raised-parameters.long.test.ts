import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findBelow, killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createFailures } from "./replication/failures.ts";
import { createReplicationUnderTest } from "./replication/replication-under-test.ts";

/** Replay needs as much of each as the primary had; max_wal_senders is the platform's own. */
const raised: Readonly<Record<string, string>> = {
  max_connections: "200",
  max_worker_processes: "40",
  max_prepared_transactions: "20",
  max_locks_per_transaction: "128",
};
const names = Object.keys(raised);

interface Parameters {
  readonly parameters: Readonly<Record<string, { readonly status: string; readonly reason: string | null }>>;
}

describe("a replica that starts with lower settings than its primary", () => {
  const fixture = createReplicationUnderTest();
  const failures = createFailures(fixture, () => undefined, []);
  beforeAll(async () => {
    await fixture.start();
    await fixture.addReplica();
    await failures.untilReplicaCounts();
  });
  afterAll(fixture.remove);

  const set = async (parameters: Readonly<Record<string, string | null>>) =>
    expectStatus(await fixture.platform.rest.patch(fixture.path("/configuration"), { parameters }), 200);
  const settingsOf = async (nodeId: string) => {
    const columns = names.map((name) => `current_setting('${name}') AS ${name}`);
    return (await fixture.queryNode(nodeId, `SELECT ${columns.join(", ")}`))[0];
  };

  it("starts again with equal settings, and no parameter is rolled back", async () => {
    const { primary, replica } = await failures.roles();
    const before = await settingsOf(replica);
    await set({ work_mem: "11MB" });
    await fixture.services.settled(fixture.main.service.id, "Running");
    const repair = failures.pauseMachine(replica);
    try {
      await set(raised);
      // Only the primary restarts.
      const { engine = 0 } = failures.processesOf(primary);
      killImmediately(engine);
      const isRaised = () =>
        settingsOf(primary).then(
          (row) => row?.["max_connections"] === "200",
          () => false,
        );
      await waitUntil("the primary runs with the raised settings", isRaised);
      // The next start of the replica has the defaults, which suffice for its own log.
      await set(Object.fromEntries(names.map((name) => [name, null])));
      const replicaEngine = failures.processesOf(replica).engine ?? 0;
      for (const pid of [replicaEngine, ...findBelow(replicaEngine)]) killImmediately(pid);
    } finally {
      repair();
    }
    const hasAsMuch = () =>
      settingsOf(replica).then(
        (row) => isDeepStrictEqual(row, raised),
        () => false,
      );
    const describeIt = () => fixture.services.describe(fixture.main.service.id);
    await waitUntil("the replica has as much", hasAsMuch, { withinMs: 60_000, describe: describeIt });
    await failures.untilReplicaCounts();
    expect(await settingsOf(replica)).toEqual(raised);
    expect(await failures.roles()).toMatchObject({ primary, replica });
    const { json } = await fixture.platform.rest.get<Parameters>(fixture.path("/configuration"));
    expect(Object.entries(json.parameters).filter(([, { status }]) => status === "rejected")).toEqual([]);
    expect(json.parameters["work_mem"]).toMatchObject({ status: "applied" });
    expect(await fixture.queryNode(replica, "SHOW work_mem")).toEqual([{ work_mem: "11MB" }]);

    await fixture.services.verb(fixture.main.service.id, "restart");
    await failures.untilReplicaCounts();
    await fixture.services.verb(fixture.main.service.id, "restart");
    await failures.untilReplicaCounts();
    for (const node of (await fixture.services.get(fixture.main.service.id)).nodes)
      expect(await settingsOf(node.id)).toEqual(before);
  });

  it("starts again with the settings in the log that its data already replayed", async () => {
    const { max_connections: usual } = (await settingsOf((await failures.roles()).primary)) ?? {};
    await set(raised);
    await fixture.services.settled(fixture.main.service.id, "Running");
    await fixture.services.verb(fixture.main.service.id, "restart");
    await failures.untilReplicaCounts();
    const { primary, replica } = await failures.roles();
    await fixture.queryNode(primary, "CREATE TABLE dropped (i int)");
    const runs = (nodeId: string, connections: unknown) => () =>
      settingsOf(nodeId).then(
        (row) => row?.["max_connections"] === connections,
        () => false,
      );
    const repair = failures.pauseMachine(replica);
    try {
      await set(Object.fromEntries(names.map((name) => [name, null])));
      killImmediately(failures.processesOf(primary).engine ?? 0);
      await waitUntil("the primary runs with the defaults", runs(primary, usual));
    } finally {
      repair();
    }
    // A dropped file makes the replica record how far it has to replay before it is consistent.
    await waitUntil("the table is dropped", () =>
      fixture.queryNode(primary, "DROP TABLE IF EXISTS dropped; CREATE TABLE IF NOT EXISTS made_after (i int)").then(
        () => true,
        () => false,
      ),
    );
    const isReplayed = () =>
      fixture.queryNode(replica, "SELECT to_regclass('made_after')::text AS found").then(
        ([row]) => row?.["found"] === "made_after",
        () => false,
      );
    await waitUntil("the replica has replayed the lower settings", isReplayed, { withinMs: 60_000 });
    expect(await settingsOf(replica)).toEqual(raised);
    const { engine = 0 } = failures.processesOf(replica);
    const resume = failures.pauseMachine(replica);
    try {
      // The next start has a parameter that no start had.
      await set({ maintenance_work_mem: "65MB" });
      for (const pid of [engine, ...findBelow(engine)]) killImmediately(pid);
    } finally {
      resume();
    }
    const isReplaced = () => ![engine, undefined].includes(failures.processesOf(replica).engine);
    await waitUntil("another engine runs", isReplaced, { withinMs: 60_000 });
    await waitUntil("the replica has as much as its log", runs(replica, "200"), {
      withinMs: 60_000,
      describe: () => fixture.services.describe(fixture.main.service.id),
    });
    await failures.untilReplicaCounts();
    expect(await settingsOf(replica)).toEqual(raised);
    expect(await failures.roles()).toMatchObject({ primary, replica });
    const { json } = await fixture.platform.rest.get<Parameters>(fixture.path("/configuration"));
    expect(Object.entries(json.parameters).filter(([, { status }]) => status === "rejected")).toEqual([]);
    expect(await fixture.queryNode(replica, "SHOW maintenance_work_mem")).toEqual([{ maintenance_work_mem: "65MB" }]);
  });

  it("has lost no acknowledged row", async () => {
    await fixture.stopWriting();
    expect(await fixture.writer.missing()).toEqual([]);
  });
});
