import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { versionNumber } from "#catalog/version-number.ts";
import { awaitsWriteFence } from "../canary/write-fence.ts";
import { type OperationObject } from "#operation/operation.ts";
import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import type { ObservedNode, ObservedService, ServiceStep } from "./observed-service.ts";
import { unfinishedOrigin } from "../service-origin.ts";
import { isEstablished, disconnectedAfterMs } from "../member/members.ts";
import { restartsOf } from "../member/restarts.ts";
import { hasDifferentImage, hasOutdatedData, lacksServiceImage } from "../canary/node-image.ts";
import type { MachineObject, MachineSize } from "#fleet/machine/machine.ts";
import { hasRequestedSize, isSized, planSize, type SizeStep } from "../../scaling/size-plan.ts";
import { memberOperations, replacementOf, stuckFault } from "../service-operations.ts";
import { awaitsRollout } from "../member/rollout-state.ts";
import { firstMemberOf, isRequiredForService, takesWrites, serves } from "../member/member-roles.ts";
import { strategyOf } from "../member/strategies.ts";
import { restoreFailure } from "../restore-failure.ts";

/** Time after which a failed engine makes the service fail. */
export const engineFailedForMs = 30_000;

/** The next steps toward the desired state. Empty if it is reached, or if nothing can be done but wait. */
export function planManagedService(service: ManagedServiceObject, observed: ObservedService): ServiceStep[] {
  const waits = awaitsWriteFence(service, observed);
  const planned = () => strategyOf(service).plan(service, observed, (node) => planNode(service, node, waits));
  if (service.metadata.deletionRequestedAt !== undefined) {
    const steps = planDeletion(observed);
    if (observed.awaitsFinalBackup !== true) return steps;
    // A final backup needs a primary, so a change of the primary completes first.
    if (service.spec.primaryChange !== undefined) return steps.length === 0 ? planned() : steps;
    return [...planClosing(service, observed), ...steps];
  }
  return [...planned(), ...planNames(service, observed)];
}

/** Steps before a final backup: the primary disconnects its clients, because the backup would lack later writes. */
function planClosing(service: ManagedServiceObject, { nodes }: ObservedService): ServiceStep[] {
  const { closed, instanceGeneration: generation } = service.spec;
  if (closed !== true) return [];
  return nodes.flatMap(({ node, connected, instance }) =>
    takesWrites(service, node) && connected && !hasGeneration(generation, instance)
      ? [{ kind: "converge" as const, node, running: true, generation }]
      : [],
  );
}

function planDeletion(observed: ObservedService): ServiceStep[] {
  if (observed.names !== "absent") return [{ kind: "withdrawNames" }];
  if (observed.awaitsFinalBackup) return [];
  const machines = observed.nodes.filter(({ machine }) => machine !== undefined);
  if (machines.length === 0) return [{ kind: "forget" }];
  if (observed.retainsDisks === true) {
    const on = machines.filter(({ machine }) => machine?.spec.power === "on");
    if (on.length > 0) return on.map(({ node }) => ({ kind: "powerMachine", node, power: "off" }));
    return machines.every(({ machine }) => machine?.status.state !== "running") ? [{ kind: "forget" }] : [];
  }
  return machines
    .filter(({ machine }) => machine?.metadata.deletionRequestedAt === undefined)
    .map(({ node }) => ({ kind: "deleteMachine", node }));
}

/** `waits`: the write fence must be stored before the machine stops. */
function planNode(service: ManagedServiceObject, observed: ObservedNode, waits: boolean): ServiceStep[] {
  const { node, machine, connected, instance, replayMemory } = observed;
  const { power, instanceGeneration: generation } = service.spec;
  if (machine === undefined) return [{ kind: "createMachine", node }];
  // The agent gets no new settings, so that the engine runs with the current ones after the drain. The keeper shuts the
  // engine down in order.
  if (observed.stoppedForDrain && power === "on")
    return machine.spec.power === "off" ? [] : [{ kind: "powerMachine", node, power: "off" }];
  if (power === "off")
    return machine.spec.power === "off"
      ? resizeSteps(planSize(service.spec, observed, true), node)
      : planShutdown(observed, generation);
  if (hasDifferentImage(service, machine)) {
    if (machine.spec.power === "on") return waits ? [] : planShutdown(observed, generation - 1);
    return machine.status.state === "stopped" ? [{ kind: "installImage", node }] : [];
  }
  if (machine.spec.power === "off") return [{ kind: "powerMachine", node, power: "on" }];
  const sizing = planSize(service.spec, observed, hasSettings(service, observed));
  if (sizing !== undefined) return resizeSteps(sizing, node);
  if (replayMemory !== undefined && replayMemory.refused === undefined)
    return planReplayMemory(replayMemory.bytes, observed, machine, generation);
  const { ownMemoryBytes } = machine.spec;
  if (ownMemoryBytes !== undefined && connected && instance !== undefined && hasRestoredData(service, instance))
    return [{ kind: "fitMachine", node, size: { ...sizeOf(machine), memoryBytes: ownMemoryBytes } }];
  // A failed service retains its snapshot, which a repair may need.
  if (machine.spec.snapshot != null && service.status.operationId === null && service.status.state === "Running")
    return [{ kind: "deleteSnapshot", node }];
  return connected && !hasGeneration(generation, instance)
    ? [{ kind: "converge", node, running: true, generation }]
    : [];
}

/** Gives the machine of a restore more memory, and then its agent the permission to use it. */
function planReplayMemory(
  memoryBytes: number,
  { node, connected }: ObservedNode,
  machine: MachineObject,
  generation: number,
): ServiceStep[] {
  if (machine.spec.memoryBytes < memoryBytes) return [{ kind: "raiseMemory", node, memoryBytes }];
  return connected && hasRequestedSize(machine) ? [{ kind: "converge", node, running: true, generation }] : [];
}

function sizeOf({ spec: { vcpu, memoryBytes, rootBytes, diskBytes } }: MachineObject): MachineSize {
  return { vcpu, memoryBytes, rootBytes, diskBytes };
}

/** No step while the machine's provider is still resizing. */
function resizeSteps(step: SizeStep | undefined, node: NodeSpec): ServiceStep[] {
  return step?.kind === "fit" ? [{ kind: "fitMachine", node, size: step.size }] : [];
}

/** True if the engine runs with the newest settings and all requested restarts. */
function hasSettings({ spec }: ManagedServiceObject, { node, instance, connected, isCurrent }: ObservedNode): boolean {
  return (
    connected &&
    isCurrent &&
    instance?.state === "running" &&
    hasGeneration(spec.instanceGeneration, instance) &&
    Number(instance.restartCount) >= restartsOf(spec, node).desired
  );
}

/**
 * Shuts the engine down in order before its machine stops. Without a connected agent the machine stops immediately, and
 * its keeper shuts the engine down.
 */
function planShutdown({ node, connected, instance }: ObservedNode, generation: number): ServiceStep[] {
  const engineUp = connected && instance !== undefined && instance.state !== "stopped" && instance.state !== "absent";
  if (!engineUp) return [{ kind: "powerMachine", node, power: "off" }];
  return hasGeneration(generation, instance) ? [] : [{ kind: "converge", node, running: false, generation }];
}

/** Other members get names as soon as they have addresses. */
function planNames(service: ManagedServiceObject, { nodes, names }: ObservedService): ServiceStep[] {
  const home = nodes.find(({ node }) => node.id === firstMemberOf(service).id);
  if (home?.machine === undefined || home.machine.status.address === "") return [];
  if (names === "absent" || names === "outdated") return [{ kind: "publishNames" }];
  return names === "published" ? [{ kind: "verifyNames" }] : [];
}

/** True if the agent has these settings or newer ones, applied or not. */
function hasGeneration(generation: number, instance: InstanceObservation | undefined): boolean {
  return instance !== undefined && Number(instance.generation) >= generation;
}

/**
 * True if the primary runs with the newest settings, its name resolves, and every replica is settled. The state of a
 * service is its primary's.
 */
export function isHealthy(service: ManagedServiceObject, observed: ObservedService): boolean {
  if (observed.names !== "verified" || service.spec.primaryChange !== undefined) return false;
  if (!serves(service, observed.nodes)) return false;
  return observed.nodes.every((node) =>
    isRequiredForService(service, node.node) ? nodeIsHealthy(service, node) : replicaIsSettled(service, node),
  );
}

/**
 * True if operations need not wait for the replica: it is healthy, copies its data, is being removed, has failed, or is
 * unreachable. A replica that awaits a rolling update counts as unreachable only after `disconnectedAfterMs`, because
 * an agent needs some seconds to find another controller.
 */
function replicaIsSettled(service: ManagedServiceObject, observed: ObservedNode): boolean {
  const { node, connected, isCurrent, instance, disconnectedMs: awayMs = 0 } = observed;
  if (!isEstablished(node) || hasOutdatedData(service.spec, node)) return true;
  if (!connected || !isCurrent || instance === undefined)
    return !awaitsRollout(service.spec, node) || awayMs >= disconnectedAfterMs;
  if (instance.state === "failed") return true;
  return instance.replication?.state === "copying" || nodeIsHealthy(service, observed);
}

/** True if the machine has finished the service's restore, or if none is in progress. */
function hasRestoredData({ spec }: ManagedServiceObject, { restore }: InstanceObservation): boolean {
  const origin = unfinishedOrigin(spec);
  return origin === undefined || (restore?.restoreId === origin.restoreId && restore.state === "finished");
}

/** Clients cannot connect while one of these checks is unhealthy. */
const neededChecks: ReadonlySet<string> = new Set(["liveness", "listener"]);

function nodeIsHealthy(service: ManagedServiceObject, node: ObservedNode): boolean {
  const { machine, connected, instance, isCurrent } = node;
  if (machine?.status.state !== "running" || !connected || instance === undefined || !isCurrent) return false;
  if (lacksServiceImage(service, machine) || !hasRestoredData(service, instance)) return false;
  return hasSettings(service, node) && isSized(service, node) && admitsClients(instance);
}

function admitsClients({ checks }: InstanceObservation): boolean {
  return checks.every(({ name, status }) => !neededChecks.has(name) || status !== "unhealthy");
}

/** True if a service with several members serves clients by its needed members, with any settings. */
export function servesWithoutOthers(service: ManagedServiceObject, { nodes, names }: ObservedService): boolean {
  if (service.spec.nodes.length === 1 || service.spec.canary !== undefined || names !== "verified") return false;
  if (!serves(service, nodes)) return false;
  return nodes
    .filter(({ node }) => isRequiredForService(service, node))
    .every(({ machine, connected, isCurrent, instance }) => {
      if (machine?.status.state !== "running" || !connected || !isCurrent) return false;
      return instance?.state === "running" && hasRestoredData(service, instance) && admitsClients(instance);
    });
}

/**
 * True if every node runs the operation's version (or any, if the operation does not change it), whether or not clients
 * are admitted. Replicas whose data are copied again are not waited for. After a rollback it is the old version.
 */
export function isHealthyOnImage(
  service: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject | undefined,
): boolean {
  if (!isHealthy(service, observed)) return false;
  const version = operation?.status.rollback === undefined ? (replacementOf(operation)?.image?.toVersion ?? "") : "";
  const nodes = observed.nodes.filter(({ node }) => !hasOutdatedData(service.spec, node));
  return version === "" || nodes.every(({ instance }) => versionNumber(instance?.engineVersion ?? "") === version);
}

/** True if every node runs the operation's version (`isHealthyOnImage`) and clients are admitted. */
export function isUpgraded(
  service: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject | undefined,
): boolean {
  return service.spec.canary === undefined && isHealthyOnImage(service, observed, operation);
}

/** Reason why provisioning cannot proceed, in a message for users; undefined while it can. */
export function faultOf(
  observed: ObservedService,
  operation: OperationObject | undefined,
  now: number,
  engineMayFailForMs = engineFailedForMs,
): { code: string; message: string } | undefined {
  // A machine that failed to start on the new image remains failed until it has the old image. The rollback has its own
  // deadline.
  const isRollingBack = operation?.status.rollback !== undefined;
  for (const { isReplica, machine, instance, connected, isCurrent, replayMemory } of observed.nodes) {
    // A failed replica is reported by its own status and by the service's health.
    if (isReplica) continue;
    if (machine?.status.state === "failed" && !isRollingBack && !isStartedAgain(machine, operation))
      return { code: "machine_failed", message: machine.status.reason };
    const restore = instance?.restore;
    // A restore that lacks memory is repeated once its machine has more.
    const isRaised = replayMemory !== undefined && replayMemory.refused === undefined;
    if (restore?.state === "failed" && restore.errorCode !== "retrying" && !isRaised)
      return { code: "restore_failed", message: restoreFailure(restore, replayMemory?.refused) };
    // An unfinished restore is not a failed engine: it reports its own failures, and without progress it is stuck.
    if (restore !== undefined && restore.state !== "finished") continue;
    if (
      connected &&
      isCurrent &&
      instance?.state === "failed" &&
      hasFailedFor(engineMayFailForMs, instance, operation, now)
    ) {
      return { code: "engine_failed", message: instance.reason };
    }
  }
  return operation !== undefined && memberOperations.some((type) => type.is(operation))
    ? undefined
    : stuckFault(operation, now);
}

/** True if the machine's crashes are older than the operation. It then fails the operation only if it crashes again. */
function isStartedAgain({ status: { crashedAt } }: MachineObject, operation: OperationObject | undefined): boolean {
  return operation !== undefined && crashedAt !== undefined && crashedAt < operation.metadata.createdAt;
}

/**
 * True if the engine has failed for `ms`. An operation may repair an earlier failure, so time counts from its start.
 */
function hasFailedFor(
  ms: number,
  { since }: InstanceObservation,
  operation: OperationObject | undefined,
  now: number,
): boolean {
  const failedAt = since === undefined ? now : Number(since.seconds) * 1000;
  return now - Math.max(failedAt, operation?.metadata.createdAt ?? 0) >= ms;
}
