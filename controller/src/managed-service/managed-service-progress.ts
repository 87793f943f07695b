import { isUp } from "../machine/machine.ts";
import { type OperationObject, replacementOf } from "../operation/operation.ts";
import type { ManagedServiceObject } from "./managed-service.ts";
import type { ObservedNode, ObservedService } from "./managed-service-plan.ts";
import { hasOtherImage } from "./trial/other-image.ts";

/** Where an operation is. `mark` is a new text whenever anything moved, so that a slow step is not a stuck one. */
export interface Progress {
  readonly step: string;
  readonly progressPct: number;
  readonly mark: string;
  /** It waits for somebody to do something, for as long as that takes: it is not stuck. */
  readonly waits?: true;
}

/** Pure: the step that the service waits for, by what is observed. */
export function progressOf(
  service: ManagedServiceObject,
  observed: ObservedService,
  operation?: OperationObject,
): Progress {
  const mark = observed.nodes.map(markOf).join(" ") + ` ${observed.names}`;
  if (service.metadata.deletionRequestedAt !== undefined) return { ...deletionProgress(observed), mark };
  const replacement = replacementOf(operation);
  if (replacement !== undefined) {
    const what = replacement.image === null ? "GuestKernel" : "Image";
    const step = operation?.status.takenBack === undefined ? {} : { step: `Take${what}Back` };
    return { ...imageProgress(service, observed, `Replace${what}`), ...step, mark };
  }
  const progress = service.spec.power === "on" ? provisioningProgress(observed) : stopProgress(observed);
  return { ...progress, mark };
}

function provisioningProgress({ nodes, names }: ObservedService): Omit<Progress, "mark"> {
  const waiting = (test: (node: ObservedNode) => boolean) => nodes.some((node) => !test(node));
  if (waiting(({ machine }) => machine !== undefined && machine.status.address !== ""))
    return { step: "SetupNetwork", progressPct: 5 };
  if (waiting(({ machine }) => machine !== undefined && isUp(machine))) return { step: "SetupServer", progressPct: 20 };
  if (waiting(({ connected }) => connected)) return { step: "SetupAgent", progressPct: 40 };
  if (names !== "verified") return { step: "SetupDNS", progressPct: 55 };
  const started = nodes.every(({ instance }) => instance?.state === "running" || instance?.state === "starting");
  return { step: "ProvisioningHealth", progressPct: started ? 85 : 70 };
}

/** Another image or kernel comes under the data: down, and up again. */
function imageProgress(
  service: ManagedServiceObject,
  observed: ObservedService,
  replacing: string,
): Omit<Progress, "mark"> {
  const { nodes } = observed;
  const behind = nodes.filter(({ machine }) => machine !== undefined && hasOtherImage(service, machine));
  if (behind.some(({ machine }) => machine?.spec.power === "on")) return { step: "StopEngine", progressPct: 10 };
  if (behind.length > 0) return { step: "StopServer", progressPct: 30 };
  if (nodes.some(({ machine }) => machine === undefined || !isUp(machine))) return { step: replacing, progressPct: 50 };
  if (nodes.some(({ connected, isCurrent }) => !connected || !isCurrent))
    return { step: "SetupAgent", progressPct: 60 };
  return { step: "ProvisioningHealth", progressPct: 80 };
}

function stopProgress({ nodes }: ObservedService): Omit<Progress, "mark"> {
  const engineUp = nodes.some(({ machine }) => machine?.spec.power === "on");
  return engineUp ? { step: "StopEngine", progressPct: 20 } : { step: "StopServer", progressPct: 70 };
}

function deletionProgress({ nodes, names }: ObservedService): Omit<Progress, "mark"> {
  if (names !== "absent") return { step: "RemoveDNS", progressPct: 20 };
  const left = nodes.filter(({ machine }) => machine !== undefined);
  if (left.length === 0) return { step: "RemoveRecords", progressPct: 90 };
  const [silent] = left.flatMap(({ silentHost }) => silentHost ?? []);
  // An operator brings the host back, or says that it is destroyed; either ends it, and nothing else may.
  if (silent !== undefined) return { step: `WaitForHost ${silent}`, progressPct: 50, waits: true };
  return { step: "RemoveServer", progressPct: 50 };
}

function markOf({ machine, connected, instance, silentHost }: ObservedNode): string {
  return [
    machine?.status.state ?? "none",
    machine?.spec.power,
    connected,
    instance?.state,
    instance?.generation,
    instance?.restartCount,
    ...(silentHost === undefined ? [] : [silentHost]),
  ].join("/");
}
