import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fromBinary } from "@bufbuild/protobuf";
import { InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { Before, FailoverFault } from "./failover-fault.ts";
import type { FailoverFixture } from "./failover-fixture.ts";
import { openIdleSessions } from "./idle-sessions.ts";

/** Lag of the replica, and number of idle sessions. */
export interface Load {
  readonly lagMb: number;
  readonly sessions: number;
}

/** Faults of a primary under load: lag of its replica, idle sessions, an absent member. */
export const loadFaults = ({ lagMb, sessions }: Load): readonly FailoverFault[] => [
  {
    name: `machine paused, its replica ${lagMb} MB behind`,
    expects: "failover",
    kinds: ["async"],
    async run(fixture, { primary, replica, newHost }, markFault) {
      await fixture.queryNode(primary, "CREATE TABLE IF NOT EXISTS bulk (filler text)");
      const repairReplica = fixture.pause(fixture.pidsOf(replica, "engine"));
      let repair = () => {};
      try {
        const chunk = "INSERT INTO bulk SELECT repeat(md5(random()::text), 32) FROM generate_series(1, 32768)";
        for (let mb = 0; mb < lagMb; mb += 32) await fixture.queryNode(primary, chunk);
        repair = fixture.pause(fixture.pidsOf(primary, "machine"));
        const atMs = markFault();
        repairReplica();
        await fixture.acceptsWrites(newHost, atMs);
      } finally {
        repairReplica();
        repair();
      }
    },
  },
  {
    name: `machine paused with ${sessions} sessions, idle or in a long transaction`,
    expects: "failover",
    isExclusive: true,
    async run(fixture, { primary, newHost }, markFault) {
      await withIdleSessions(fixture, sessions, async () => {
        const repair = fixture.pause(fixture.pidsOf(primary, "machine"));
        try {
          await fixture.acceptsWrites(newHost, markFault());
        } finally {
          repair();
        }
      });
    },
  },
  {
    name: `switchover with ${sessions} idle sessions`,
    expects: "failover",
    isExclusive: true,
    async run(fixture, before, markFault) {
      await withIdleSessions(fixture, sessions, () => switchOver(fixture, before, markFault));
    },
  },
  {
    name: "all killed, and the one that was away is back first",
    expects: "none",
    kinds: ["async", "valkey"],
    async run(fixture, { primary, replica, newHost }, markFault) {
      const spec = join(fixture.platform.directory, "machines", primary, "state", "instance", "spec.bin");
      const failoverCandidates = () => fromBinary(InstanceSpecSchema, readFileSync(spec)).replication?.voters.length;
      const repairReplica = fixture.pause(fixture.pidsOf(replica, "machine"));
      let repairPrimary = () => {};
      try {
        await waitUntil("the primary has no failover candidate", () => failoverCandidates() === 0);
        const before = fixture.writer.acknowledged;
        await waitUntil("it accepts writes by itself", () => fixture.writer.acknowledged > before + 5);
        repairPrimary = fixture.pause(fixture.pidsOf(primary, "machine"));
        const atMs = markFault();
        for (const id of [primary, replica]) killImmediately(fixture.processesOf(id).engine ?? 0);
        repairReplica();
        // Time: the length of the pause, in which a promotion would end.
        await sleep(20_000);
        if (fixture.nodeWriters.firstAfter(newHost, atMs) !== undefined)
          throw new Error("the member that was down accepts writes");
      } finally {
        repairReplica();
        repairPrimary();
      }
    },
  },
];

/** Requests a switchover to the replica, which completes. */
async function switchOver(fixture: FailoverFixture, before: Before, markFault: () => number): Promise<void> {
  const { platform, main, services } = fixture;
  markFault();
  expectStatus(await platform.rest.post(fixture.path(`/nodes/${before.replica}/failover`)), 202);
  await fixture.ends(before.operations);
  const operations = await services.operations(main.service.id);
  const failover = operations.find(({ id, type }) => type === "failover" && !before.operations.has(id));
  if (failover?.status !== "completed")
    throw new Error(`the switchover is ${failover?.status}: ${failover?.error?.message}`);
}

/** Opens idle sessions for `run`, and expects that a demoted primary closes all of them. */
async function withIdleSessions(fixture: FailoverFixture, sessions: number, run: () => Promise<void>): Promise<void> {
  const idle = await openIdleSessions(fixture, sessions);
  try {
    await run();
    await waitUntil("no session remains", () => idle.open === 0, { describe: () => `${idle.open} are open` });
  } finally {
    idle.close();
  }
}
