import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { versionNumber } from "#catalog/version-number.ts";
import { awaitsSeal } from "./trial/trial-seal.ts";
import { type OperationObject, replacementOf, stuckFault } from "#operation/operation.ts";
import type { ManagedServiceObject, NodeSpec } from "./managed-service.ts";
import type { ObservedNode, ObservedService, ServiceStep } from "./observed-service.ts";
import { unfinishedOrigin } from "./service-origin.ts";
import { planMembers } from "./member/member-plan.ts";
import { isPrimary, isStaying } from "./member/members.ts";
import { awayAfterMs } from "./member/proven-replicas.ts";
import { restartsOf } from "./member/restarts.ts";
import { awaitsTurn } from "./member/turns.ts";
import { hasOtherImage, isOutdated, lacksImage } from "./trial/other-image.ts";
import { isSized, planSize, type SizeStep } from "../scaling/size-plan.ts";

/** How long an engine may be failed before the service is. */
export const engineFailedForMs = 30_000;

/** Pure: what to do next so that the world becomes what was asked for. Empty when it is so, or when only waiting helps. */
export function planManagedService(service: ManagedServiceObject, observed: ObservedService): ServiceStep[] {
  const waits = awaitsSeal(service, observed);
  const planned = () => planMembers(service, observed, (node) => planNode(service, node, waits));
  if (service.metadata.deletionRequestedAt !== undefined) {
    const steps = planDeletion(observed);
    if (observed.awaitsFinalBackup !== true) return steps;
    // A last backup is taken of a primary: one that is being named becomes it first.
    if (service.spec.succession !== undefined) return steps.length === 0 ? planned() : steps;
    return [...planClosing(service, observed), ...steps];
  }
  return [...planned(), ...planNames(service, observed)];
}

/** The primary lets its clients go: what they write from now on would not be in the final backup. */
function planClosing(service: ManagedServiceObject, { nodes }: ObservedService): ServiceStep[] {
  const { closed, instanceGeneration: generation } = service.spec;
  if (closed !== true) return [];
  return nodes.flatMap(({ node, connected, instance }) =>
    isPrimary(service, node) && connected && !isHeldTo(generation, instance)
      ? [{ kind: "converge" as const, node, running: true, generation }]
      : [],
  );
}

function planDeletion(observed: ObservedService): ServiceStep[] {
  if (observed.names !== "absent") return [{ kind: "withdrawNames" }];
  if (observed.awaitsFinalBackup) return [];
  const machines = observed.nodes.filter(({ machine }) => machine !== undefined);
  if (machines.length === 0) return [{ kind: "forget" }];
  if (observed.keepsDisk === true) {
    const on = machines.filter(({ machine }) => machine?.spec.power === "on");
    if (on.length > 0) return on.map(({ node }) => ({ kind: "powerMachine", node, power: "off" }));
    return machines.every(({ machine }) => machine?.status.state !== "running") ? [{ kind: "forget" }] : [];
  }
  return machines
    .filter(({ machine }) => machine?.metadata.deletionRequestedAt === undefined)
    .map(({ node }) => ({ kind: "deleteMachine", node }));
}

/** `waits`: that clients are kept out is written before the machine is stopped. */
function planNode(service: ManagedServiceObject, observed: ObservedNode, waits: boolean): ServiceStep[] {
  const { node, machine, connected, instance } = observed;
  const { power, instanceGeneration: generation } = service.spec;
  if (machine === undefined) return [{ kind: "createMachine", node }];
  // Nothing is told to the agent: its engine runs again with the settings that it has. The keeper shuts it down in order.
  if (observed.isHeld && power === "on")
    return machine.spec.power === "off" ? [] : [{ kind: "powerMachine", node, power: "off" }];
  if (power === "off")
    return machine.spec.power === "off"
      ? fitting(planSize(service.spec, observed, true), node)
      : planShutdown(observed, generation);
  if (hasOtherImage(service, machine)) {
    if (machine.spec.power === "on") return waits ? [] : planShutdown(observed, generation - 1);
    return machine.status.state === "stopped" ? [{ kind: "placeImage", node }] : [];
  }
  if (machine.spec.power === "off") return [{ kind: "powerMachine", node, power: "on" }];
  const sizing = planSize(service.spec, observed, tookSettings(service, observed));
  if (sizing !== undefined) return fitting(sizing, node);
  // A failed service keeps its snapshot: its repair may need it.
  if (machine.spec.snapshot != null && service.status.operationId === null && service.status.state === "Running")
    return [{ kind: "dropSnapshot", node }];
  return connected && !isHeldTo(generation, instance) ? [{ kind: "converge", node, running: true, generation }] : [];
}

/** Without a step while the machine's provider is at it. */
function fitting(step: SizeStep | undefined, node: NodeSpec): ServiceStep[] {
  return step?.kind === "fit" ? [{ kind: "fitMachine", node, size: step.size }] : [];
}

/** Does the engine run with the newest settings, after the restarts that were asked for? */
function tookSettings({ spec }: ManagedServiceObject, { node, instance, connected, isCurrent }: ObservedNode): boolean {
  return (
    connected &&
    isCurrent &&
    instance?.state === "running" &&
    isHeldTo(spec.instanceGeneration, instance) &&
    Number(instance.restartCount) >= restartsOf(spec, node).wanted
  );
}

/** The engine is shut down in order first; a machine whose agent is silent is stopped as it is, its keeper stops the engine. */
function planShutdown({ node, connected, instance }: ObservedNode, generation: number): ServiceStep[] {
  const engineUp = connected && instance !== undefined && instance.state !== "stopped" && instance.state !== "absent";
  if (!engineUp) return [{ kind: "powerMachine", node, power: "off" }];
  return isHeldTo(generation, instance) ? [] : [{ kind: "converge", node, running: false, generation }];
}

/** Other members have names as soon as they have addresses. */
function planNames(service: ManagedServiceObject, { nodes, names }: ObservedService): ServiceStep[] {
  const primary = nodes.find(({ node }) => isPrimary(service, node));
  if (primary?.machine === undefined || primary.machine.status.address === "") return [];
  if (names === "absent" || names === "outdated") return [{ kind: "publishNames" }];
  return names === "published" ? [{ kind: "verifyNames" }] : [];
}

/** Is the agent holding its machine to these settings or newer ones (whether they work yet or not)? */
function isHeldTo(generation: number, instance: InstanceObservation | undefined): boolean {
  return instance !== undefined && Number(instance.generation) >= generation;
}

/**
 * Is the primary up with the newest settings and reachable by name, and so are the replicas, but for those that cannot be had?
 * A service is what its primary is.
 */
export function isHealthy(service: ManagedServiceObject, observed: ObservedService): boolean {
  if (observed.names !== "verified" || service.spec.succession !== undefined) return false;
  return observed.nodes.every((node) =>
    isPrimary(service, node.node) ? nodeIsHealthy(service, node) : replicaIsSettled(service, node),
  );
}

/**
 * Nobody waits for a replica that has yet to get its data, also anew, that goes, or that is out of reach; one whose turn is to come is out of
 * reach only after a while, as agents take a moment to find another controller.
 */
function replicaIsSettled(service: ManagedServiceObject, observed: ObservedNode): boolean {
  const { node, connected, isCurrent, instance, awayMs = 0 } = observed;
  if (!isStaying(node) || isOutdated(service.spec, node)) return true;
  if (!connected || !isCurrent || instance === undefined)
    return !awaitsTurn(service.spec, node) || awayMs >= awayAfterMs;
  if (instance.state === "failed") return true;
  return instance.replication?.state === "copying" || nodeIsHealthy(service, observed);
}

/** Does the machine have what the service's data are made from? */
function hasItsData({ spec }: ManagedServiceObject, { restore }: InstanceObservation): boolean {
  const origin = unfinishedOrigin(spec);
  return origin === undefined || (restore?.restoreId === origin.restoreId && restore.state === "finished");
}

/** With one of them unhealthy there are clients that do not get in. */
const neededChecks: ReadonlySet<string> = new Set(["liveness", "listener"]);

function nodeIsHealthy(service: ManagedServiceObject, node: ObservedNode): boolean {
  const { machine, connected, instance, isCurrent } = node;
  if (machine?.status.state !== "running" || !connected || instance === undefined || !isCurrent) return false;
  if (lacksImage(service, machine) || !hasItsData(service, instance)) return false;
  return tookSettings(service, node) && isSized(service, node) && admitsClients(instance);
}

function admitsClients({ checks }: InstanceObservation): boolean {
  return checks.every(({ name, status }) => !neededChecks.has(name) || status !== "unhealthy");
}

/** Does the primary of a service with replicas serve by its name, with whatever settings? */
export function servesByItsPrimary(service: ManagedServiceObject, { nodes, names }: ObservedService): boolean {
  if (service.spec.nodes.length === 1 || service.spec.trial !== undefined || names !== "verified") return false;
  const primary = nodes.find(({ node }) => isPrimary(service, node));
  if (primary?.machine?.status.state !== "running" || !primary.connected || !primary.isCurrent) return false;
  const { instance } = primary;
  return instance?.state === "running" && hasItsData(service, instance) && admitsClients(instance);
}

/**
 * Is every node up, whoever is admitted, with the version that the operation brings, or any version when it brings none? Replicas whose
 * data are to be copied anew follow later. An
 * engine that has been given up for the old image is well with what it had.
 */
export function isWellUnderImage(
  service: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject | undefined,
): boolean {
  if (!isHealthy(service, observed)) return false;
  const wanted = operation?.status.rollback === undefined ? (replacementOf(operation)?.image?.toVersion ?? "") : "";
  const nodes = observed.nodes.filter(({ node }) => !isOutdated(service.spec, node));
  return wanted === "" || nodes.every(({ instance }) => versionNumber(instance?.engineVersion ?? "") === wanted);
}

/** The same, and clients are admitted. */
export function isUpgraded(
  service: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject | undefined,
): boolean {
  return service.spec.trial === undefined && isWellUnderImage(service, observed, operation);
}

/** Why provisioning cannot go on, in words that a user can act on; undefined while it can. */
export function faultOf(
  observed: ObservedService,
  operation: OperationObject | undefined,
  now: number,
  engineMayFailForMs = engineFailedForMs,
): { code: string; message: string } | undefined {
  // A machine that the tried image kept from starting says so until it has the old one: the way back ends by its own deadline.
  const isRollingBack = operation?.status.rollback !== undefined;
  for (const { isReplica, machine, instance, connected, isCurrent } of observed.nodes) {
    // What becomes of a replica is told by its own status, and by the service's health.
    if (isReplica) continue;
    if (machine?.status.state === "failed" && !isRollingBack)
      return { code: "machine_failed", message: machine.status.reason };
    const restore = instance?.restore;
    if (restore?.state === "failed" && restore.errorCode !== "retrying")
      return { code: "restore_failed", message: restore.reason };
    // A restore that is tried again says so itself; one that gets nowhere is stuck.
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
  return operation !== undefined && memberOperations.has(operation.spec.type) ? undefined : stuckFault(operation, now);
}

/** Their end, however they end, is no end of the service. */
const memberOperations: ReadonlySet<string> = new Set(["add_node", "remove_node", "move_node", "failover"]);

/** What failed before the operation began is what that may mend: it has as long from its own beginning on. */
function hasFailedFor(
  ms: number,
  { since }: InstanceObservation,
  operation: OperationObject | undefined,
  now: number,
): boolean {
  const failedAt = since === undefined ? now : Number(since.seconds) * 1000;
  return now - Math.max(failedAt, operation?.metadata.createdAt ?? 0) >= ms;
}
