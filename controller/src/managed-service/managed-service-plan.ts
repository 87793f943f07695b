import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { versionNumber } from "../catalog/version-number.ts";
import type { MachineObject } from "../machine/machine.ts";
import { awaitsSeal } from "./trial/trial-seal.ts";
import { type OperationObject, replacementOf, stuckFault } from "../operation/operation.ts";
import type { ManagedServiceObject, NodeSpec } from "./managed-service.ts";
import type { ManagedServiceEvent } from "./managed-service-lifecycle.ts";
import { hasOtherImage } from "./trial/other-image.ts";

/** What the world is like for one service, read fresh at each reconcile. */
export interface ObservedService {
  readonly nodes: readonly ObservedNode[];
  /** Of the service's DNS names: are they as they should be in the store, and do the servers answer so? */
  readonly names: "absent" | "outdated" | "published" | "verified";
  /** Users or databases in its engine are being changed. */
  readonly isChanging: boolean;
}

export interface ObservedNode {
  readonly node: NodeSpec;
  readonly machine: MachineObject | undefined;
  readonly connected: boolean;
  /** What the agent last told of its engine. */
  readonly instance: InstanceObservation | undefined;
  /** Its host is drained, with consent to stop what has no other node: it is off until that is over. */
  readonly isHeld: boolean;
  /** Its host, when that does not answer: whatever was ordered there waits until it does. */
  readonly silentHost: string | undefined;
  /** It told that since the machine's start; what it told before is about an engine that is gone. */
  readonly isCurrent: boolean;
}

/** One thing to do. Each is idempotent. */
export type ServiceStep =
  | { readonly kind: "createMachine"; readonly node: NodeSpec }
  | { readonly kind: "powerMachine"; readonly node: NodeSpec; readonly power: "on" | "off" }
  /** The generation before the service's own is that of a stop that a start follows. */
  | { readonly kind: "converge"; readonly node: NodeSpec; readonly running: boolean; readonly generation: number }
  /**
   * The service's image and kernel come under the data of a machine that is stopped, and the machine is started; a snapshot
   * comes first.
   */
  | { readonly kind: "placeImage"; readonly node: NodeSpec }
  /** Nobody needs the snapshot of the machine's data any more. */
  | { readonly kind: "dropSnapshot"; readonly node: NodeSpec }
  | { readonly kind: "deleteMachine"; readonly node: NodeSpec }
  | { readonly kind: "publishNames" }
  | { readonly kind: "verifyNames" }
  | { readonly kind: "withdrawNames" }
  | { readonly kind: "forget" };

/** How long an engine may be failed before the service is. */
export const engineFailedForMs = 30_000;

/** Pure: what to do next so that the world becomes what was asked for. Empty when it is so, or when only waiting helps. */
export function planManagedService(service: ManagedServiceObject, observed: ObservedService): ServiceStep[] {
  if (service.metadata.deletionRequestedAt !== undefined) return planDeletion(observed);
  const waits = awaitsSeal(service, observed);
  return [...observed.nodes.flatMap((node) => planNode(service, node, waits)), ...planNames(observed)];
}

function planDeletion(observed: ObservedService): ServiceStep[] {
  if (observed.names !== "absent") return [{ kind: "withdrawNames" }];
  const machines = observed.nodes.filter(({ machine }) => machine !== undefined);
  if (machines.length === 0) return [{ kind: "forget" }];
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
  if (power === "off") return machine.spec.power === "off" ? [] : planShutdown(observed, generation);
  if (hasOtherImage(service, machine)) {
    if (machine.spec.power === "on") return waits ? [] : planShutdown(observed, generation - 1);
    return machine.status.state === "stopped" ? [{ kind: "placeImage", node }] : [];
  }
  if (machine.spec.power === "off") return [{ kind: "powerMachine", node, power: "on" }];
  // One that failed keeps it: whoever mends the service may want it.
  if (machine.spec.snapshot != null && service.status.operationId === null && service.status.state === "Running")
    return [{ kind: "dropSnapshot", node }];
  return connected && !isHeldTo(generation, instance) ? [{ kind: "converge", node, running: true, generation }] : [];
}

/** The engine is shut down in order first; a machine whose agent is silent is stopped as it is, its keeper stops the engine. */
function planShutdown({ node, connected, instance }: ObservedNode, generation: number): ServiceStep[] {
  const engineUp = connected && instance !== undefined && instance.state !== "stopped" && instance.state !== "absent";
  if (!engineUp) return [{ kind: "powerMachine", node, power: "off" }];
  return isHeldTo(generation, instance) ? [] : [{ kind: "converge", node, running: false, generation }];
}

function planNames({ nodes, names }: ObservedService): ServiceStep[] {
  if (nodes.some(({ machine }) => machine === undefined || machine.status.address === "")) return [];
  if (names === "absent" || names === "outdated") return [{ kind: "publishNames" }];
  return names === "published" ? [{ kind: "verifyNames" }] : [];
}

/** Is the agent holding its machine to these settings or newer ones (whether they work yet or not)? */
function isHeldTo(generation: number, instance: InstanceObservation | undefined): boolean {
  return instance !== undefined && Number(instance.generation) >= generation;
}

/** Is every node up with the newest settings and reachable by name? */
export function isHealthy(service: ManagedServiceObject, observed: ObservedService): boolean {
  return observed.names === "verified" && observed.nodes.every((node) => nodeIsHealthy(service, node));
}

/** With one of them unhealthy there are clients that do not get in. */
const neededChecks: ReadonlySet<string> = new Set(["liveness", "listener"]);

function nodeIsHealthy(
  service: ManagedServiceObject,
  { machine, connected, instance, isCurrent }: ObservedNode,
): boolean {
  if (machine?.status.state !== "running" || !connected || instance === undefined || !isCurrent) return false;
  if (hasOtherImage(service, machine)) return false;
  if (instance.state !== "running" || !isHeldTo(service.spec.instanceGeneration, instance)) return false;
  if (Number(instance.restartCount) < service.spec.restartCount) return false;
  return instance.checks.every(({ name, status }) => !neededChecks.has(name) || status !== "unhealthy");
}

/**
 * Is every node up, whoever is let in, with the version that the operation brings, or any version when it brings none? An
 * engine that has been given up for the old image is well with what it had.
 */
export function isWellUnderImage(
  service: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject | undefined,
): boolean {
  if (!isHealthy(service, observed)) return false;
  const wanted = operation?.status.takenBack === undefined ? (replacementOf(operation)?.image?.toVersion ?? "") : "";
  return (
    wanted === "" || observed.nodes.every(({ instance }) => versionNumber(instance?.engineVersion ?? "") === wanted)
  );
}

/** The same, and clients are let in. */
function isUpgraded(
  service: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject | undefined,
): boolean {
  return service.spec.trial === undefined && isWellUnderImage(service, observed, operation);
}

/** Is the service stopped for maintenance of a host? */
function isHeldDown(observed: ObservedService): boolean {
  return observed.nodes.some(({ isHeld }) => isHeld);
}

/** Is everything shut down as asked? */
function isStopped(observed: ObservedService): boolean {
  return observed.nodes.every(({ machine }) => machine?.spec.power === "off" && machine.status.state === "stopped");
}

/** Why provisioning cannot go on, in words that a user can act on; undefined while it can. */
export function faultOf(
  observed: ObservedService,
  operation: OperationObject | undefined,
  now: number,
  engineMayFailForMs = engineFailedForMs,
): { code: string; message: string } | undefined {
  // A machine that the tried image kept from starting says so until it has the old one: the way back ends by its own deadline.
  const isTakenBack = operation?.status.takenBack !== undefined;
  for (const { machine, instance, connected, isCurrent } of observed.nodes) {
    if (machine?.status.state === "failed" && !isTakenBack)
      return { code: "machine_failed", message: machine.status.reason };
    if (connected && isCurrent && instance?.state === "failed" && hasFailedFor(engineMayFailForMs, instance, now)) {
      return { code: "engine_failed", message: instance.reason };
    }
  }
  return stuckFault(operation, now);
}

function hasFailedFor(ms: number, instance: InstanceObservation, now: number): boolean {
  const since = instance.since === undefined ? now : Number(instance.since.seconds) * 1000;
  return now - since >= ms;
}

/** What the observation means for the life cycle, or undefined when nothing that the table knows. */
export function managedServiceEvent(
  service: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject | undefined,
  now: number,
): ManagedServiceEvent | undefined {
  if (service.metadata.deletionRequestedAt !== undefined) return undefined;
  const { state } = service.status;
  const wantsOn = service.spec.power === "on" && !isHeldDown(observed);
  if (!wantsOn) return state !== "Stopped" && isStopped(observed) ? "stopped" : undefined;
  if (state === "Stopped") return "startRequested";
  if (state === "Error" && operation?.spec.type === "start" && operation.status.state === "pending")
    return "startRequested";
  const change = replacementOf(operation);
  if (state === "Running" && change !== undefined)
    return isUpgraded(service, observed, operation) ? undefined : "upgradeStarted";
  const fault = faultOf(observed, operation, now);
  if (state === "Upgrading") {
    if (isUpgraded(service, observed, operation)) return "upgradeEnded";
    // An image that does not work is taken back first (image-trial.ts).
    const isTried = change !== undefined && operation?.status.takenBack === undefined;
    return fault === undefined || isTried ? undefined : "failed";
  }
  if (fault !== undefined) {
    if (state === "Running") return "failed";
    return state === "Error" ? undefined : "provisioningFailed";
  }
  if (state === "Pending")
    return observed.nodes.some(({ machine }) => machine !== undefined) ? "provisioningStarted" : undefined;
  return state !== "Running" && isHealthy(service, observed) ? "becameHealthy" : undefined;
}
