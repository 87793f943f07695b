import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fromBinary } from "@bufbuild/protobuf";
import { InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { killAtOnce } from "../../support/platform/platform-processes.ts";
import { expectStatus } from "../../support/platform/services.ts";
import { waitUntil } from "../../support/wait-until.ts";
import type { Before, FailoverFault } from "./failover-fault.ts";
import type { FailoverGround } from "./failover-ground.ts";
import { openIdleSessions } from "./idle-sessions.ts";

/** How far behind a replica is brought, and how many sessions idle. */
export interface Load {
  readonly lagMb: number;
  readonly sessions: number;
}

/** Faults of a primary with a load of its own: what its replica lacks, what its sessions hold, who was away. */
export const ladenFaults = ({ lagMb, sessions }: Load): readonly FailoverFault[] => [
  {
    name: `machine stands still, its replica ${lagMb} MB behind`,
    expects: "failover",
    kinds: ["async"],
    async run(ground, { primary, replica, newHost }, strikes) {
      await ground.queryNode(primary, "CREATE TABLE IF NOT EXISTS bulk (filler text)");
      const mendReplica = ground.pause(ground.pidsOf(replica, "engine"));
      let mend = () => {};
      try {
        const chunk = "INSERT INTO bulk SELECT repeat(md5(random()::text), 32) FROM generate_series(1, 32768)";
        for (let mb = 0; mb < lagMb; mb += 32) await ground.queryNode(primary, chunk);
        mend = ground.pause(ground.pidsOf(primary, "machine"));
        const atMs = strikes();
        mendReplica();
        await ground.takesWrites(newHost, atMs);
      } finally {
        mendReplica();
        mend();
      }
    },
  },
  {
    name: `machine stands still with ${sessions} sessions, idle or in a long transaction`,
    expects: "failover",
    isAlone: true,
    async run(ground, { primary, newHost }, strikes) {
      await withIdleSessions(ground, sessions, async () => {
        const mend = ground.pause(ground.pidsOf(primary, "machine"));
        try {
          await ground.takesWrites(newHost, strikes());
        } finally {
          mend();
        }
      });
    },
  },
  {
    name: `switchover with ${sessions} idle sessions`,
    expects: "failover",
    isAlone: true,
    async run(ground, before, strikes) {
      await withIdleSessions(ground, sessions, () => switchOver(ground, before, strikes));
    },
  },
  {
    name: "all killed, and the one that was away is back first",
    expects: "none",
    kinds: ["async", "valkey"],
    async run(ground, { primary, replica, newHost }, strikes) {
      const spec = join(ground.platform.directory, "machines", primary, "state", "instance", "spec.bin");
      const vouchers = () => fromBinary(InstanceSpecSchema, readFileSync(spec)).replication?.vouchers.length;
      const mendReplica = ground.pause(ground.pidsOf(replica, "machine"));
      let mendPrimary = () => {};
      try {
        await waitUntil("the primary counts on nobody", () => vouchers() === 0);
        const before = ground.writer.acknowledged;
        await waitUntil("it takes writes by itself", () => ground.writer.acknowledged > before + 5);
        mendPrimary = ground.pause(ground.pidsOf(primary, "machine"));
        const atMs = strikes();
        for (const id of [primary, replica]) killAtOnce(ground.processesOf(id).engine ?? 0);
        mendReplica();
        // Longer than it would take to become the primary.
        await sleep(20_000);
        if (ground.sides.firstAfter(newHost, atMs) !== undefined) throw new Error("the one that was away takes writes");
      } finally {
        mendReplica();
        mendPrimary();
      }
    },
  },
];

/** The replica is asked to take the place of its primary, and the operation completes. */
async function switchOver(ground: FailoverGround, before: Before, strikes: () => number): Promise<void> {
  const { platform, main, services } = ground;
  strikes();
  expectStatus(await platform.rest.post(ground.path(`/nodes/${before.replica}/failover`)), 202);
  await ground.ends(before.operations);
  const operations = await services.operations(main.service.id);
  const own = operations.find(({ id, type }) => type === "failover" && !before.operations.has(id));
  if (own?.status !== "completed") throw new Error(`the switchover is ${own?.status}: ${own?.error?.message}`);
}

/** Sessions of a primary that is one no more are ended, all of them. */
async function withIdleSessions(ground: FailoverGround, sessions: number, run: () => Promise<void>): Promise<void> {
  const idle = await openIdleSessions(ground, sessions);
  try {
    await run();
    await waitUntil("no session is left", () => idle.open === 0, { describe: () => `${idle.open} are open` });
  } finally {
    idle.close();
  }
}
