import { setTimeout as sleep } from "node:timers/promises";
import { killAtOnce } from "../../support/platform/platform-processes.ts";
import type { FailoverFault } from "./failover-fault.ts";
import type { FailoverFixture } from "./failover-fixture.ts";

const longMs = 10_000;
const shortMs = 3_000;

type Part = "agent" | "engine" | "machine";

/** These parts are paused until the replica accepts writes. */
function standsStill(fixture: FailoverFixture, id: string, ...parts: Part[]): () => void {
  return fixture.pause(parts.flatMap((part) => fixture.pidsOf(id, part)));
}

/** Parts that are paused for a while, whichever node accepts writes meanwhile. */
const paused = (name: string, expects: FailoverFault["expects"], ...parts: Part[]): FailoverFault => ({
  name,
  expects,
  async run(fixture, { primary }, strikes) {
    const mend = standsStill(fixture, primary, ...parts);
    strikes();
    await sleep(longMs);
    mend();
  },
});

const killed = (name: string, pidsOf: (fixture: FailoverFixture, id: string) => readonly number[]): FailoverFault => ({
  name,
  expects: "either",
  async run(fixture, { primary }, strikes) {
    const pids = pidsOf(fixture, primary);
    strikes();
    for (const pid of pids) killAtOnce(pid);
    // Waits, so that the node that accepts writes in the end is not one that was about to die.
    await sleep(1_000);
  },
});

const first = (pids: readonly number[]) => pids.slice(0, 1);

/** Faults of one machine or of both. */
export const machineFaults: readonly FailoverFault[] = [
  {
    name: "machine paused",
    expects: "failover",
    async run(fixture, { primary, newHost }, strikes) {
      const mend = standsStill(fixture, primary, "machine");
      try {
        await fixture.takesWrites(newHost, strikes());
      } finally {
        mend();
      }
    },
  },
  paused("engine paused for 10 s", "failover", "engine"),
  paused("agent paused for 10 s", "either", "agent"),
  paused("engine and agent paused for 10 s", "failover", "engine", "agent"),
  {
    name: "a part paused for 3 s or less",
    expects: "none",
    async run(fixture, { primary }, strikes) {
      const mend = standsStill(fixture, primary, fixture.random.pick<Part>(["agent", "engine", "machine"]));
      strikes();
      await sleep(fixture.random.between(500, shortMs));
      mend();
      await sleep(shortMs);
    },
  },
  killed("engine killed", (fixture, id) => first(fixture.pidsOf(id, "engine"))),
  killed("agent killed", (fixture, id) => first(fixture.pidsOf(id, "agent"))),
  killed("keeper killed", (fixture, id) => [fixture.processesOf(id).keeper ?? 0].filter((pid) => pid > 0)),
  killed("machine killed", (fixture, id) => fixture.pidsOf(id, "machine")),
  {
    name: "postmaster killed while a session is busy",
    expects: "either",
    kinds: ["async", "sync"],
    async run(fixture, { primary }, strikes) {
      const busy = fixture
        .queryNode(primary, "SELECT count(*) FROM generate_series(1, 2000000) AS n WHERE md5(n::text) > 'x'")
        .catch(() => undefined);
      await sleep(300);
      const [postmaster = 0] = fixture.pidsOf(primary, "engine");
      strikes();
      killAtOnce(postmaster);
      await busy;
    },
  },
  {
    name: "machine paused, the replica's agent is killed",
    expects: "failover",
    async run(fixture, { primary, replica, newHost }, strikes) {
      const mend = standsStill(fixture, primary, "machine");
      try {
        for (const pid of first(fixture.pidsOf(replica, "agent"))) killAtOnce(pid);
        await fixture.takesWrites(newHost, strikes());
      } finally {
        mend();
      }
    },
  },
  {
    name: "engine killed, and the replica's",
    expects: "either",
    async run(fixture, { primary, replica }, strikes) {
      const pids = [primary, replica].flatMap((id) => first(fixture.pidsOf(id, "engine")));
      strikes();
      for (const pid of pids) killAtOnce(pid);
      await sleep(1_000);
    },
  },
  {
    name: "machine is back while it is replaced",
    expects: "either",
    async run(fixture, { primary, operations }, strikes) {
      const mend = standsStill(fixture, primary, "machine");
      strikes();
      try {
        await fixture.reaches("FencePrimary", operations);
        await sleep(fixture.random.between(0, 1_000));
      } finally {
        mend();
      }
    },
  },
  {
    name: "the replica's agent is killed as it is promoted",
    expects: "failover",
    async run(fixture, { primary, replica, newHost, operations }, strikes) {
      const mend = standsStill(fixture, primary, "machine");
      const atMs = strikes();
      try {
        await fixture.reaches("PromoteReplica", operations);
        for (const pid of first(fixture.pidsOf(replica, "agent"))) killAtOnce(pid);
        await fixture.takesWrites(newHost, atMs);
      } finally {
        mend();
      }
    },
  },
  {
    name: "two failovers in 30 s",
    expects: "several",
    async run(fixture, { primary, newHost, oldHost }, strikes) {
      const mendFirst = standsStill(fixture, primary, "machine");
      try {
        await fixture.takesWrites(newHost, strikes());
      } finally {
        mendFirst();
      }
      await fixture.untilReplicaCounts();
      const { primary: second } = await fixture.roles();
      const mendSecond = standsStill(fixture, second, "machine");
      try {
        await fixture.takesWrites(oldHost, performance.now());
      } finally {
        mendSecond();
      }
    },
  },
];
