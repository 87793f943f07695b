import { setTimeout as sleep } from "node:timers/promises";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import type { Before, FailoverFault } from "./failover-fault.ts";
import type { FailoverFixture } from "./failover-fixture.ts";

const steps = ["FencePrimary", "PromoteReplica", "MoveDNS", "MarkUnavailable"];

/** Pauses the primary's machine until another node accepts writes; `duringPause` injects a second fault. */
async function replaced(
  fixture: FailoverFixture,
  { primary, newHost }: Before,
  markFault: () => number,
  duringPause: () => Promise<void>,
): Promise<void> {
  const repair = fixture.pause(fixture.pidsOf(primary, "machine"));
  try {
    const atMs = markFault();
    await duringPause();
    await fixture.acceptsWrites(newHost, atMs);
  } finally {
    repair();
  }
}

/** Pauses every member of etcd; the returned function resumes them. */
function pauseAll({ etcd }: FailoverFixture): () => void {
  const repairs = etcd.all.map((member) => member.pause());
  return () => {
    for (const repair of repairs) repair();
  };
}

const controllerKilledAt = (step: string): FailoverFault => ({
  name: `machine paused, controllers killed at ${step}`,
  expects: "failover",
  isExclusive: true,
  run: (fixture, before, markFault) =>
    replaced(fixture, before, markFault, async () => {
      await fixture.reaches(step, before.operations);
      for (const pid of fixture.platform.processes().controllers) killImmediately(pid);
    }),
});

/** Faults of parts that services share, alone or during a change of the primary. */
export const sharedFaults: readonly FailoverFault[] = [
  ...steps.map(controllerKilledAt),
  {
    name: "etcd paused for 10 s",
    expects: "either",
    isExclusive: true,
    async run(fixture, _, markFault) {
      const repair = pauseAll(fixture);
      try {
        markFault();
        // Time: the length of the pause.
        await sleep(10_000);
      } finally {
        repair();
      }
    },
  },
  {
    name: "machine paused, and etcd for 10 s",
    expects: "failover",
    isExclusive: true,
    async run(fixture, before, markFault) {
      const mendEtcd = pauseAll(fixture);
      try {
        await replaced(fixture, before, markFault, async () => {
          // Time: the length of the pause.
          await sleep(10_000);
          mendEtcd();
        });
      } finally {
        mendEtcd();
      }
    },
  },
  {
    name: "machine paused, the DNS server is killed",
    expects: "failover",
    isExclusive: true,
    run: (fixture, before, markFault) =>
      replaced(fixture, before, markFault, async () => {
        await fixture.reaches("PromoteReplica", before.operations);
        killImmediately(fixture.platform.processes().dns ?? 0);
      }),
  },
];
