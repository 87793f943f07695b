import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import { hasDifferentImage, hasOutdatedData } from "./node-image.ts";
import { excludesClients, type FencedNode, writeFenceOf } from "./rollback-plan.ts";

/** The part of an observed service that the write fence depends on. */
interface FenceObservation {
  readonly nodes: readonly {
    readonly node: NodeSpec;
    readonly machine: MachineObject | undefined;
    readonly connected: boolean;
    readonly isCurrent: boolean;
    readonly instance: InstanceObservation | undefined;
  }[];
  readonly isChanging: boolean;
}

/** The service with `writesFenced`, once its value is decided. */
export function withWriteFence(service: ManagedServiceObject, observed: FenceObservation): ManagedServiceObject {
  const { canary } = service.spec;
  const writesFenced = writeFenceOf(canary, fencedNodes(service, observed), observed.isChanging);
  if (canary === undefined || writesFenced === undefined) return service;
  return { ...service, spec: { ...service.spec, canary: { ...canary, writesFenced } } };
}

/** True if the write fence is the next step, before the machines are stopped. */
export function awaitsWriteFence(service: ManagedServiceObject, observed: FenceObservation): boolean {
  const { canary } = service.spec;
  return (
    canary !== undefined && canary.writesFenced === undefined && excludesClients(canary, fencedNodes(service, observed))
  );
}

/** Nodes whose data the canary uses. The data of pinned replicas do not change and need no snapshot. */
function fencedNodes(service: ManagedServiceObject, { nodes }: FenceObservation): FencedNode[] {
  const canaryNodes = nodes.filter(({ node }) => !hasOutdatedData(service.spec, node));
  return canaryNodes.map(({ machine, connected, isCurrent, instance }) => ({
    isUntouched: machine?.spec.power === "on" && hasDifferentImage(service, machine),
    isConnected: connected && isCurrent,
    storedGeneration: Number(instance?.savedGeneration ?? 0n),
  }));
}

/**
 * The snapshot of its data that a machine should have: taken before the canary; a rollback retains or restores it.
 */
export function snapshotFor(
  { spec: { canary } }: ManagedServiceObject,
  { spec }: MachineObject,
): NonNullable<MachineObject["spec"]["snapshot"]> | null {
  const there = spec.snapshot ?? null;
  if (canary === undefined) return there;
  const { operationId: name, dataRolledBack } = canary;
  if (there?.name === name) return dataRolledBack === true ? { name, restore: true } : there;
  return { name, restore: false };
}
