import { setTimeout as sleep } from "node:timers/promises";
import { killAtOnce } from "../../support/platform/platform-processes.ts";
import type { Before, FailoverFault } from "./failover-fault.ts";
import type { FailoverGround } from "./failover-ground.ts";

const steps = ["FencePrimary", "PromoteReplica", "MoveDNS", "MarkUnavailable"];

/** The primary's machine stands still until another node takes writes; more goes wrong meanwhile. */
async function replaced(
  ground: FailoverGround,
  { primary, newHost }: Before,
  strikes: () => number,
  meanwhile: () => Promise<void>,
): Promise<void> {
  const mend = ground.pause(ground.pidsOf(primary, "machine"));
  try {
    const atMs = strikes();
    await meanwhile();
    await ground.takesWrites(newHost, atMs);
  } finally {
    mend();
  }
}

/** Every member of etcd stands still; what comes back has them go on. */
function pauseAll({ etcd }: FailoverGround): () => void {
  const mends = etcd.all.map((member) => member.pause());
  return () => {
    for (const mend of mends) mend();
  };
}

const controllerKilledAt = (step: string): FailoverFault => ({
  name: `machine stands still, controllers killed at ${step}`,
  expects: "failover",
  isAlone: true,
  run: (ground, before, strikes) =>
    replaced(ground, before, strikes, async () => {
      await ground.reaches(step, before.operations);
      for (const pid of ground.platform.processes().controllers) killAtOnce(pid);
    }),
});

/** Faults of what services share, alone or while a primary is replaced. */
export const sharedFaults: readonly FailoverFault[] = [
  ...steps.map(controllerKilledAt),
  {
    name: "etcd stands still for 10 s",
    expects: "either",
    isAlone: true,
    async run(ground, _, strikes) {
      const mend = pauseAll(ground);
      try {
        strikes();
        await sleep(10_000);
      } finally {
        mend();
      }
    },
  },
  {
    name: "machine stands still, and etcd for 10 s",
    expects: "failover",
    isAlone: true,
    async run(ground, before, strikes) {
      const mendEtcd = pauseAll(ground);
      try {
        await replaced(ground, before, strikes, async () => {
          await sleep(10_000);
          mendEtcd();
        });
      } finally {
        mendEtcd();
      }
    },
  },
  {
    name: "machine stands still, the DNS server is killed",
    expects: "failover",
    isAlone: true,
    run: (ground, before, strikes) =>
      replaced(ground, before, strikes, async () => {
        await ground.reaches("PromoteReplica", before.operations);
        killAtOnce(ground.platform.processes().dns ?? 0);
      }),
  },
];
