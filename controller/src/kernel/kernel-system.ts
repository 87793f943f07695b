import { inBackground } from "@holdfast/common/background.ts";
import { eachDataPlane } from "@holdfast/common/data-planes.ts";
import type { Use } from "./assembly.ts";
import { type KernelSettings, kernelSettings } from "./kernel-settings.ts";
import type { Kernel } from "./kernel.ts";
import { certificateNames, maintainLocalIdentities } from "./pki/local-identities.ts";
import { createPeriodic } from "./runtime/periodic.ts";
import { declareSystem } from "./system-declaration.ts";
import type { System } from "./system.ts";

const minuteMs = 60_000;
const hourMs = 3_600_000;

/** Metrics and periodic work of the kernel. */
export const kernelSystem = declareSystem({ name: "kernel", settings: kernelSettings, open: openKernelSystem });

/**
 * Deletes expired stored responses and old rows of the history, frees space in etcd, and writes the identities of data
 * planes on the controller's host.
 */
async function openKernelSystem(kernel: Kernel, use: Use, settings: KernelSettings): Promise<System> {
  const {
    storedResponses,
    space,
    history,
    automationPauses,
    authority,
    controllerRegistry,
    clock,
    outbox,
    auditedActs,
    log,
  } = kernel;
  const identities = await maintainLocalIdentities({
    authority,
    caFile: settings.caFile,
    // oxlint-disable-next-line holdfast/own-keys -- the keys are closed: the names of the data planes
    directories: eachDataPlane((name) => settings[`${name}IdentityDir`]),
    certificateNames: use(certificateNames),
    onWritten: (generation) =>
      inBackground(log, "generation of the authority", controllerRegistry.announceAuthority(generation)),
    clock,
    log,
  });
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
      createPeriodic("audited-acts", minuteMs, auditedActs.sweep),
      createPeriodic("stored-responses", hourMs, async (signal) => void (await storedResponses.sweep(signal))),
      createPeriodic("history-maintenance", hourMs, async () => {
        await history.prepare(clock.now());
        // Systems aggregate rows before these are dropped.
        if (automationPauses.list("deletion").length === 0) await history.dropExpired(clock.now());
      }),
    ],
    close: () => identities.close(),
  };
}
