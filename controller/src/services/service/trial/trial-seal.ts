import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import { hasOtherImage, isOutdated } from "./other-image.ts";
import { keepsClientsOut, type SealedNode, sealOf } from "./way-back.ts";

/** What of an observed service the seal is about. */
interface Sealable {
  readonly nodes: readonly {
    readonly node: NodeSpec;
    readonly machine: MachineObject | undefined;
    readonly connected: boolean;
    readonly isCurrent: boolean;
    readonly instance: InstanceObservation | undefined;
  }[];
  readonly isChanging: boolean;
}

/** Pure: the service as it is, with what is certain by now of who can write to its data. */
export function withSeal(service: ManagedServiceObject, observed: Sealable): ManagedServiceObject {
  const { trial } = service.spec;
  const sealed = sealOf(trial, sealedNodes(service, observed), observed.isChanging);
  if (trial === undefined || sealed === undefined) return service;
  return { ...service, spec: { ...service.spec, trial: { ...trial, sealed } } };
}

/** Does the seal come next, before the machines are stopped? */
export function awaitsSeal(service: ManagedServiceObject, observed: Sealable): boolean {
  const { trial } = service.spec;
  return trial !== undefined && trial.sealed === undefined && keepsClientsOut(trial, sealedNodes(service, observed));
}

/** Data that stay as they are, as a replica's beside a primary's that are upgraded, go back to nothing. */
function sealedNodes(service: ManagedServiceObject, { nodes }: Sealable): SealedNode[] {
  const tried = nodes.filter(({ node }) => !isOutdated(service.spec, node));
  return tried.map(({ machine, connected, isCurrent, instance }) => ({
    isUntouched: machine?.spec.power === "on" && hasOtherImage(service, machine),
    isHeard: connected && isCurrent,
    keptGeneration: Number(instance?.keptGeneration ?? 0n),
  }));
}

/**
 * Pure: the snapshot that a machine is to have, of the data as they were before the image is tried. The way back with the old
 * one keeps, or goes to, what the way there took.
 */
export function snapshotFor(
  { spec: { trial } }: ManagedServiceObject,
  { spec }: MachineObject,
): NonNullable<MachineObject["spec"]["snapshot"]> | null {
  const there = spec.snapshot ?? null;
  if (trial === undefined) return there;
  const { operationId: name, dataBack } = trial;
  if (there?.name === name) return dataBack === true ? { name, restore: true } : there;
  return { name, restore: false };
}
