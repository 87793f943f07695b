import { setTimeout as sleep } from "node:timers/promises";
import { isAlive, killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { FailoverFault } from "./failover-fault.ts";
import type { FailoverFixture } from "./failover-fixture.ts";

const longMs = 10_000;
const shortMs = 3_000;

type Part = "agent" | "engine" | "machine";

/** Pauses parts of a machine; the returned function resumes them. */
function pauseParts(fixture: FailoverFixture, id: string, ...parts: Part[]): () => void {
  return fixture.pause(parts.flatMap((part) => fixture.pidsOf(id, part)));
}

/** Pauses parts of the primary's machine for `longMs`, even if another node accepts writes before that. */
const paused = (name: string, expects: FailoverFault["expects"], ...parts: Part[]): FailoverFault => ({
  name,
  expects,
  async run(fixture, { primary }, markFault) {
    const repair = pauseParts(fixture, primary, ...parts);
    markFault();
    // Time: the length of the pause.
    await sleep(longMs);
    repair();
  },
});

const killed = (name: string, pidsOf: (fixture: FailoverFixture, id: string) => readonly number[]): FailoverFault => ({
  name,
  expects: "either",
  async run(fixture, { primary }, markFault) {
    const pids = pidsOf(fixture, primary);
    markFault();
    for (const pid of pids) killImmediately(pid);
    // Otherwise the node that accepts writes could still be about to end.
    await haveEnded(pids);
  },
});

function haveEnded(pids: readonly number[]): Promise<unknown> {
  return waitUntil("the killed processes have ended", () => !pids.some(isAlive), { everyMs: 20 });
}

const first = (pids: readonly number[]) => pids.slice(0, 1);

/** Faults of one machine or of both. */
export const machineFaults: readonly FailoverFault[] = [
  {
    name: "machine paused",
    expects: "failover",
    async run(fixture, { primary, newHost }, markFault) {
      const repair = pauseParts(fixture, primary, "machine");
      try {
        await fixture.acceptsWrites(newHost, markFault());
      } finally {
        repair();
      }
    },
  },
  paused("engine paused for 10 s", "failover", "engine"),
  paused("agent paused for 10 s", "either", "agent"),
  paused("engine and agent paused for 10 s", "failover", "engine", "agent"),
  {
    name: "a part paused for 3 s or less",
    expects: "none",
    async run(fixture, { primary }, markFault) {
      const repair = pauseParts(fixture, primary, fixture.random.pick<Part>(["agent", "engine", "machine"]));
      markFault();
      // Time: the length of the pause, which is random.
      await sleep(fixture.random.between(500, shortMs));
      repair();
      // Time: the moment of the next fault, which may not follow sooner.
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
    async run(fixture, { primary }, markFault) {
      const statement = "SELECT count(*) FROM generate_series(1, 5000000) AS n WHERE md5(n::text) > 'x'";
      const busy = fixture.queryNode(primary, statement).catch(() => undefined);
      const running = `SELECT 1 AS found FROM pg_stat_activity
        WHERE state = 'active' AND query LIKE '%generate_series(1, 5000000)%' AND pid <> pg_backend_pid()`;
      const isBusy = async () => (await fixture.queryNode(primary, running)).length > 0;
      await waitUntil("a session is busy", isBusy, { everyMs: 20 });
      const [postmaster = 0] = fixture.pidsOf(primary, "engine");
      markFault();
      killImmediately(postmaster);
      await busy;
    },
  },
  {
    name: "machine paused, the replica's agent is killed",
    expects: "failover",
    async run(fixture, { primary, replica, newHost }, markFault) {
      const repair = pauseParts(fixture, primary, "machine");
      try {
        for (const pid of first(fixture.pidsOf(replica, "agent"))) killImmediately(pid);
        await fixture.acceptsWrites(newHost, markFault());
      } finally {
        repair();
      }
    },
  },
  {
    name: "engine killed, and the replica's",
    expects: "either",
    async run(fixture, { primary, replica }, markFault) {
      const pids = [primary, replica].flatMap((id) => first(fixture.pidsOf(id, "engine")));
      markFault();
      for (const pid of pids) killImmediately(pid);
      await haveEnded(pids);
    },
  },
  {
    name: "machine is back while it is replaced",
    expects: "either",
    async run(fixture, { primary, operations }, markFault) {
      const repair = pauseParts(fixture, primary, "machine");
      markFault();
      try {
        await fixture.reaches("FencePrimary", operations);
        // Time: the moment of the second fault, which is random.
        await sleep(fixture.random.between(0, 1_000));
      } finally {
        repair();
      }
    },
  },
  {
    name: "the replica's agent is killed as it is promoted",
    expects: "failover",
    async run(fixture, { primary, replica, newHost, operations }, markFault) {
      const repair = pauseParts(fixture, primary, "machine");
      const atMs = markFault();
      try {
        await fixture.reaches("PromoteReplica", operations);
        for (const pid of first(fixture.pidsOf(replica, "agent"))) killImmediately(pid);
        await fixture.acceptsWrites(newHost, atMs);
      } finally {
        repair();
      }
    },
  },
  {
    name: "two failovers in 30 s",
    expects: "several",
    async run(fixture, { primary, newHost, oldHost }, markFault) {
      const mendFirst = pauseParts(fixture, primary, "machine");
      try {
        await fixture.acceptsWrites(newHost, markFault());
      } finally {
        mendFirst();
      }
      await fixture.untilReplicaCounts();
      const { primary: second } = await fixture.roles();
      const mendSecond = pauseParts(fixture, second, "machine");
      try {
        await fixture.acceptsWrites(oldHost, performance.now());
      } finally {
        mendSecond();
      }
    },
  },
];
