import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { MachineObject } from "../machine/machine.ts";
import { type OperationObject, stuckFault } from "../operation/operation.ts";
import type { ManagedServiceObject, NodeSpec } from "./managed-service.ts";
import type { ManagedServiceEvent } from "./managed-service-lifecycle.ts";

/** What the world is like for one service, read fresh at each reconcile. */
export interface ObservedService {
  readonly nodes: readonly ObservedNode[];
  /** Of the service's DNS names: are they as they should be in the store, and do the servers answer so? */
  readonly names: "absent" | "outdated" | "published" | "verified";
}

export interface ObservedNode {
  readonly node: NodeSpec;
  readonly machine: MachineObject | undefined;
  readonly connected: boolean;
  /** What the agent last told of its engine. */
  readonly instance: InstanceObservation | undefined;
  /** It told that since the machine's start; what it told before is about an engine that is gone. */
  readonly isCurrent: boolean;
}

/** One thing to do. Each is idempotent. */
export type ServiceStep =
  | { readonly kind: "createMachine"; readonly node: NodeSpec }
  | { readonly kind: "powerMachine"; readonly node: NodeSpec; readonly power: "on" | "off" }
  | { readonly kind: "converge"; readonly node: NodeSpec; readonly running: boolean }
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
  return [...observed.nodes.flatMap((node) => planNode(service, node)), ...planNames(observed)];
}

function planDeletion(observed: ObservedService): ServiceStep[] {
  if (observed.names !== "absent") return [{ kind: "withdrawNames" }];
  const machines = observed.nodes.filter(({ machine }) => machine !== undefined);
  if (machines.length === 0) return [{ kind: "forget" }];
  return machines
    .filter(({ machine }) => machine?.metadata.deletionRequestedAt === undefined)
    .map(({ node }) => ({ kind: "deleteMachine", node }));
}

function planNode(service: ManagedServiceObject, { node, machine, connected, instance }: ObservedNode): ServiceStep[] {
  if (machine === undefined) return [{ kind: "createMachine", node }];
  if (service.spec.power === "on") {
    if (machine.spec.power === "off") return [{ kind: "powerMachine", node, power: "on" }];
    return connected && !isHeldTo(service, instance) ? [{ kind: "converge", node, running: true }] : [];
  }
  if (machine.spec.power === "off") return [];
  // The engine is shut down in order first; a machine whose agent is silent is stopped as it is, its keeper stops the engine.
  const engineUp = connected && instance !== undefined && instance.state !== "stopped" && instance.state !== "absent";
  if (!engineUp) return [{ kind: "powerMachine", node, power: "off" }];
  return isHeldTo(service, instance) ? [] : [{ kind: "converge", node, running: false }];
}

function planNames({ nodes, names }: ObservedService): ServiceStep[] {
  if (nodes.some(({ machine }) => machine === undefined || machine.status.address === "")) return [];
  if (names === "absent" || names === "outdated") return [{ kind: "publishNames" }];
  return names === "published" ? [{ kind: "verifyNames" }] : [];
}

/** Is the agent holding its machine to the newest settings (whether they work yet or not)? */
function isHeldTo(service: ManagedServiceObject, instance: InstanceObservation | undefined): boolean {
  return instance !== undefined && Number(instance.generation) >= service.spec.instanceGeneration;
}

/** Is every node up with the newest settings and reachable by name? */
export function isHealthy(service: ManagedServiceObject, observed: ObservedService): boolean {
  return observed.names === "verified" && observed.nodes.every((node) => nodeIsHealthy(service, node));
}

function nodeIsHealthy(
  service: ManagedServiceObject,
  { machine, connected, instance, isCurrent }: ObservedNode,
): boolean {
  if (machine?.status.state !== "running" || !connected || instance === undefined || !isCurrent) return false;
  if (instance.state !== "running" || !isHeldTo(service, instance)) return false;
  if (Number(instance.restartCount) < service.spec.restartCount) return false;
  return instance.checks.every((check) => check.name !== "liveness" || check.status !== "unhealthy");
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
): { code: string; message: string } | undefined {
  for (const { machine, instance, connected, isCurrent } of observed.nodes) {
    if (machine?.status.state === "failed") return { code: "machine_failed", message: machine.status.reason };
    if (connected && isCurrent && instance?.state === "failed" && hasFailedLong(instance, now)) {
      return { code: "engine_failed", message: instance.reason };
    }
  }
  return stuckFault(operation, now);
}

function hasFailedLong(instance: InstanceObservation, now: number): boolean {
  const since = instance.since === undefined ? now : Number(instance.since.seconds) * 1000;
  return now - since >= engineFailedForMs;
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
  const wantsOn = service.spec.power === "on";
  if (!wantsOn) return state !== "Stopped" && isStopped(observed) ? "stopped" : undefined;
  if (state === "Stopped") return "startRequested";
  if (state === "Error" && operation?.spec.type === "start" && operation.status.state === "pending")
    return "startRequested";
  const fault = faultOf(observed, operation, now);
  if (fault !== undefined) {
    if (state === "Running") return "failed";
    return state === "Error" ? undefined : "provisioningFailed";
  }
  if (state === "Pending")
    return observed.nodes.some(({ machine }) => machine !== undefined) ? "provisioningStarted" : undefined;
  return state !== "Running" && isHealthy(service, observed) ? "becameHealthy" : undefined;
}
