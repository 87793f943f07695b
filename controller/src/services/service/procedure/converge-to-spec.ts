import type { RestoreObservation } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { isUp } from "#fleet/machine/machine.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import { isHealthy, planManagedService } from "../reconcile/managed-service-plan.ts";
import type { ObservedNode, ObservedService } from "../reconcile/observed-service.ts";
import { unfinishedOrigin } from "../service-origin.ts";
import type { Procedure, StepProgress } from "./procedure.ts";
import { firstMemberOf } from "../member/member-roles.ts";

/** The default procedure: the request changes the spec, and the operation completes when the service matches it. */
export const convergeToSpec: Procedure = {
  plan: planManagedService,
  progress: (service, observed) =>
    service.spec.power === "on" ? provisioningProgress(service, observed) : stopProgress(observed),
  isComplete: (service, observed) => service.status.state === "Running" && isHealthy(service, observed),
  fault: () => undefined,
};

function provisioningProgress(service: ManagedServiceObject, { nodes, names }: ObservedService): StepProgress {
  const waiting = (test: (node: ObservedNode) => boolean) => nodes.some((node) => !test(node));
  if (waiting(({ machine }) => machine !== undefined && machine.status.address !== ""))
    return { step: "SetupNetwork", progressPct: 5 };
  if (waiting(({ machine }) => machine !== undefined && isUp(machine))) return { step: "SetupServer", progressPct: 20 };
  if (waiting(({ connected }) => connected)) return { step: "SetupAgent", progressPct: 40 };
  if (names !== "verified") return { step: "SetupDNS", progressPct: 55 };
  const origin = unfinishedOrigin(service.spec);
  const restore = nodes.find(({ node }) => node.id === firstMemberOf(service).id)?.instance?.restore;
  if (origin !== undefined && restore?.state !== "finished")
    // Less than the next step's progress, so that progress never decreases if a restore starts again.
    return { step: "ProvisioningRestore", progressPct: 60 + Math.floor(19 * restoredShare(restore)) };
  const started = nodes.every(({ instance }) => instance?.state === "running" || instance?.state === "starting");
  return { step: "ProvisioningHealth", progressPct: started ? 85 : 80 };
}

/** Restored share of the data, from 0 to 1; 0 while the total size is unknown. */
function restoredShare(restore: RestoreObservation | undefined): number {
  if (restore === undefined || restore.totalBytes === 0n) return 0;
  return Math.min(1, Number(restore.restoredBytes) / Number(restore.totalBytes));
}

function stopProgress({ nodes }: ObservedService): StepProgress {
  const engineUp = nodes.some(({ machine }) => machine?.spec.power === "on");
  return engineUp ? { step: "StopEngine", progressPct: 20 } : { step: "StopServer", progressPct: 70 };
}
