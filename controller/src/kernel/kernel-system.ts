import { kernelSettings } from "./kernel-settings.ts";
import type { Kernel } from "./kernel.ts";
import { createPeriodic } from "./runtime/periodic.ts";
import { declareSystem } from "./system-declaration.ts";
import type { System } from "./system.ts";

const minuteMs = 60_000;
const hourMs = 3_600_000;

/** The kernel's own metrics and periodic work. */
export const kernelSystem = declareSystem({ name: "kernel", settings: kernelSettings, open: openKernelSystem });

/** Deletes expired stored responses and old rows of the history, and frees space in etcd. */
function openKernelSystem({ storedResponses, space, history, automationPauses, clock, outbox }: Kernel): System {
  return {
    name: "kernel",
    metrics: [
      {
        name: "outbox_waiting",
        help: "Events and audit entries that wait for the history",
        read: () => outbox.waiting,
      },
    ],
    work: [
      createPeriodic("etcd-space", minuteMs, space.tidy),
      createPeriodic("kept-answers", hourMs, async (signal) => void (await storedResponses.sweep(signal))),
      createPeriodic("history-upkeep", hourMs, async () => {
        await history.prepare(clock.now());
        // Systems aggregate rows before these are dropped.
        if (automationPauses.list("deletion").length === 0) await history.dropExpired(clock.now());
      }),
    ],
  };
}
