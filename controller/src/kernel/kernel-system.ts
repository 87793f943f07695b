import { kernelSettings } from "./kernel-settings.ts";
import type { Kernel } from "./kernel.ts";
import { createPeriodic } from "./runtime/periodic.ts";
import { declareSystem } from "./system-declaration.ts";
import type { System } from "./system.ts";

const minuteMs = 60_000;
const hourMs = 3_600_000;

/** What the kernel itself keeps up. */
export const kernelSystem = declareSystem({ name: "kernel", settings: kernelSettings, open: openKernelSystem });

/** Expires the kernel's kept answers and old rows of the history, and makes room in etcd. */
function openKernelSystem({ keptAnswers, space, history, holds, clock, outbox }: Kernel): System {
  return {
    name: "kernel",
    metrics: [
      {
        name: "outbox_waiting",
        help: "Events and audit entries that the history has not yet",
        read: () => outbox.waiting,
      },
    ],
    work: [
      createPeriodic("etcd-space", minuteMs, space.tidy),
      createPeriodic("kept-answers", hourMs, async (signal) => void (await keptAnswers.sweep(signal))),
      createPeriodic("history-upkeep", hourMs, async () => {
        await history.prepare(clock.now());
        // Rows are deleted after the systems have aggregated them, not before.
        if (holds.list("deletion").length === 0) await history.forget(clock.now());
      }),
    ],
  };
}
