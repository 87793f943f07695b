import type { RestoreObservation } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import type { PeersObservation, ReplicationObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { OperationObject } from "#operation/operation.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import type { ObservedNode, ObservedService } from "./observed-service.ts";
import type { StepProgress } from "../procedure/procedure.ts";
import { strategyOf } from "../member/strategies.ts";
import { procedureOf } from "../procedure/procedures.ts";

/**
 * Progress of an operation. `mark` is a string that changes with any progress, such as `running/on/true/running/7/1
 * verified`, so that a slow step does not count as stuck.
 */
export interface Progress extends StepProgress {
  readonly mark: string;
}

/** The step that the operation waits for. */
export function progressOf(
  service: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject,
): Progress {
  const mark = observed.nodes.map(markOf).join(" ") + ` ${observed.names}`;
  const obstacle = strategyOf(service).obstacle(service, observed);
  return {
    ...(obstacle !== undefined && { obstacle }),
    ...procedureOf(operation).progress(service, observed, operation),
    mark,
  };
}

function markOf({ node, machine, connected, instance, silentHost }: ObservedNode): string {
  const { size } = machine?.status ?? {};
  return [
    ...(size === undefined ? [] : [`${size.vcpu} ${size.memoryBytes} ${size.diskBytes}`]),
    machine?.status.state ?? "none",
    machine?.spec.power,
    connected,
    instance?.state,
    instance?.generation,
    instance?.restartCount,
    // Of an engine that recovers after a crash, the reason has how far it is.
    ...(instance?.state === "preparing" || instance?.state === "starting" ? [instance.reason] : []),
    ...(silentHost === undefined ? [] : [silentHost]),
    ...(instance?.replication === undefined ? [] : [replicationMarkOf(instance.replication)]),
    ...(instance?.peers === undefined ? [] : [peersMarkOf(instance.peers)]),
    // A new member of a cluster does not report copied bytes, so the mark uses its disk usage.
    ...(node.joining === true && instance !== undefined && instance.replication === undefined
      ? [instance.dataBytes]
      : []),
    ...(instance?.restore === undefined ? [] : [restoreMarkOf(instance.restore)]),
  ].join("/");
}

function replicationMarkOf({ role, state, copiedBytes }: ReplicationObservation): string {
  return `${role} ${state} ${copiedBytes}`;
}

function peersMarkOf({ members, joining, inSync, leaving }: PeersObservation): string {
  const drained = leaving.map(({ number, remainingBytes }) => `${number}:${remainingBytes}`);
  return `${members.join()} ${joining.join()} ${inSync} ${drained.join()}`;
}

function restoreMarkOf({ state, restoredBytes, restoredObjects, position }: RestoreObservation): string {
  return `${state} ${restoredBytes} ${restoredObjects} ${position}`;
}
