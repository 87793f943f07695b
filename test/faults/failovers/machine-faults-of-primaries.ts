import { setTimeout as sleep } from "node:timers/promises";
import { killAtOnce } from "../../support/platform/platform-processes.ts";
import type { FailoverFault } from "./failover-fault.ts";
import type { FailoverGround } from "./failover-ground.ts";

const longMs = 10_000;
const shortMs = 3_000;

type Part = "agent" | "engine" | "machine";

/** These stand still until the replica takes writes. */
function standsStill(ground: FailoverGround, id: string, ...parts: Part[]): () => void {
  return ground.pause(parts.flatMap((part) => ground.pidsOf(id, part)));
}

/** Parts that stand still for a while, whoever takes writes meanwhile. */
const paused = (name: string, expects: FailoverFault["expects"], ...parts: Part[]): FailoverFault => ({
  name,
  expects,
  async run(ground, { primary }, strikes) {
    const mend = standsStill(ground, primary, ...parts);
    strikes();
    await sleep(longMs);
    mend();
  },
});

const killed = (name: string, pidsOf: (ground: FailoverGround, id: string) => readonly number[]): FailoverFault => ({
  name,
  expects: "either",
  async run(ground, { primary }, strikes) {
    const pids = pidsOf(ground, primary);
    strikes();
    for (const pid of pids) killAtOnce(pid);
    // So that what takes writes in the end is not what was about to die.
    await sleep(1_000);
  },
});

const first = (pids: readonly number[]) => pids.slice(0, 1);

/** Faults of one machine or of both. */
export const machineFaults: readonly FailoverFault[] = [
  {
    name: "machine stands still",
    expects: "failover",
    async run(ground, { primary, newHost }, strikes) {
      const mend = standsStill(ground, primary, "machine");
      try {
        await ground.takesWrites(newHost, strikes());
      } finally {
        mend();
      }
    },
  },
  paused("engine stands still for 10 s", "failover", "engine"),
  paused("agent stands still for 10 s", "either", "agent"),
  paused("engine and agent stand still for 10 s", "failover", "engine", "agent"),
  {
    name: "a part stands still for 3 s or less",
    expects: "none",
    async run(ground, { primary }, strikes) {
      const mend = standsStill(ground, primary, ground.random.pick<Part>(["agent", "engine", "machine"]));
      strikes();
      await sleep(ground.random.between(500, shortMs));
      mend();
      await sleep(shortMs);
    },
  },
  killed("engine killed", (ground, id) => first(ground.pidsOf(id, "engine"))),
  killed("agent killed", (ground, id) => first(ground.pidsOf(id, "agent"))),
  killed("keeper killed", (ground, id) => [ground.processesOf(id).keeper ?? 0].filter((pid) => pid > 0)),
  killed("machine killed", (ground, id) => ground.pidsOf(id, "machine")),
  {
    name: "postmaster killed while a session is busy",
    expects: "either",
    kinds: ["async", "sync"],
    async run(ground, { primary }, strikes) {
      const busy = ground
        .queryNode(primary, "SELECT count(*) FROM generate_series(1, 2000000) AS n WHERE md5(n::text) > 'x'")
        .catch(() => undefined);
      await sleep(300);
      const [postmaster = 0] = ground.pidsOf(primary, "engine");
      strikes();
      killAtOnce(postmaster);
      await busy;
    },
  },
  {
    name: "machine stands still, the replica's agent is killed",
    expects: "failover",
    async run(ground, { primary, replica, newHost }, strikes) {
      const mend = standsStill(ground, primary, "machine");
      try {
        for (const pid of first(ground.pidsOf(replica, "agent"))) killAtOnce(pid);
        await ground.takesWrites(newHost, strikes());
      } finally {
        mend();
      }
    },
  },
  {
    name: "engine killed, and the replica's",
    expects: "either",
    async run(ground, { primary, replica }, strikes) {
      const pids = [primary, replica].flatMap((id) => first(ground.pidsOf(id, "engine")));
      strikes();
      for (const pid of pids) killAtOnce(pid);
      await sleep(1_000);
    },
  },
  {
    name: "machine is back while it is replaced",
    expects: "either",
    async run(ground, { primary, operations }, strikes) {
      const mend = standsStill(ground, primary, "machine");
      strikes();
      try {
        await ground.reaches("FencePrimary", operations);
        await sleep(ground.random.between(0, 1_000));
      } finally {
        mend();
      }
    },
  },
  {
    name: "the replica's agent is killed as it is promoted",
    expects: "failover",
    async run(ground, { primary, replica, newHost, operations }, strikes) {
      const mend = standsStill(ground, primary, "machine");
      const atMs = strikes();
      try {
        await ground.reaches("PromoteReplica", operations);
        for (const pid of first(ground.pidsOf(replica, "agent"))) killAtOnce(pid);
        await ground.takesWrites(newHost, atMs);
      } finally {
        mend();
      }
    },
  },
  {
    name: "two failovers in 30 s",
    expects: "several",
    async run(ground, { primary, newHost, oldHost }, strikes) {
      const mendFirst = standsStill(ground, primary, "machine");
      try {
        await ground.takesWrites(newHost, strikes());
      } finally {
        mendFirst();
      }
      await ground.untilReplicaCounts();
      const { primary: second } = await ground.roles();
      const mendSecond = standsStill(ground, second, "machine");
      try {
        await ground.takesWrites(oldHost, performance.now());
      } finally {
        mendSecond();
      }
    },
  },
];
