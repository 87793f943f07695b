import type { ManagedServiceObject } from "../../managed-service.ts";
import type { ObservedNode, ObservedService, ServiceStep } from "../../reconcile/observed-service.ts";
import { isReplicated } from "../members.ts";
import { replacementPrimary } from "../move-node.ts";
import { hasTakenOver, oldPrimaryLogEnd } from "./primary-change.ts";
import { isPrimary } from "./primary.ts";
import { nextInRollout } from "./rollout.ts";

/**
 * The steps of all members, in an order that is safe for replication. `planNode` returns the steps of one node
 * regardless of the others, as for a service with a single node.
 */
export function planMembers(
  service: ManagedServiceObject,
  observed: ObservedService,
  planNode: (node: ObservedNode) => ServiceStep[],
): ServiceStep[] {
  const { nodes } = observed;
  const { primaryChange, instanceGeneration } = service.spec;
  const primary = nodes.find(({ node }) => isPrimary(service, node));
  if (primaryChange?.step === "yield" || primaryChange?.step === "fence") {
    const steps = nodes.filter(({ node }) => node.id === primaryChange.from).flatMap(planNode);
    // The change proceeds after a deadline even if the old primary never reports the end of its log.
    return [...(oldPrimaryLogEnd(service, observed) === undefined ? steps : []), { kind: "changePrimary" }];
  }
  const isPrimaryUp = primary !== undefined && isUp(primary, instanceGeneration);
  const steps = nodes.flatMap((member) => {
    if (member.node.leaving === true) return planLeaving(member);
    if (isPrimary(service, member.node)) return planNode(member);
    const memberSteps = planNode(member);
    // A replica without data, and every replica during a change, waits for a primary that takes writes. A stopped
    // replica that starts together with its primary waits for the primary.
    const waits = primaryChange === undefined ? !isPrimaryUp && !hasData(member) : !hasTakenOver(service, observed);
    const startsWithPrimary = service.status.state !== "Running" && member.instance?.state === "stopped";
    const allowed =
      waits || (startsWithPrimary && !isPrimaryUp && mayStart(primary)) || !isReplicated(service.spec)
        ? memberSteps.filter(({ kind }) => kind !== "converge")
        : memberSteps;
    return service.spec.power === "off" ? stoppingPrimaryFirst(allowed, primary) : allowed;
  });
  if (primaryChange !== undefined) return [...steps, { kind: "changePrimary" }];
  const step = nextInRollout(service, observed);
  const to = step?.kind === "switchOver" ? step.to : replacementPrimary(service, observed);
  return to === undefined ? steps : [...steps, { kind: "switchOver", to }];
}

function planLeaving({ node, machine }: ObservedNode): ServiceStep[] {
  if (machine === undefined) return [{ kind: "removeNode", node }];
  return machine.metadata.deletionRequestedAt === undefined ? [{ kind: "deleteMachine", node }] : [];
}

/** Delays the stop of replicas until the primary has stopped, so that they receive its last writes. */
function stoppingPrimaryFirst(steps: ServiceStep[], primary: ObservedNode | undefined): ServiceStep[] {
  const isStopping = steps.some((step) => isShutdown(step));
  return isStopping && primary?.machine?.spec.power === "on" ? steps.filter((step) => !isShutdown(step)) : steps;
}

function isShutdown(step: ServiceStep): boolean {
  return (step.kind === "converge" && !step.running) || (step.kind === "powerMachine" && step.power === "off");
}

function isUp({ connected, isCurrent, instance }: ObservedNode, generation: number): boolean {
  const isUpToDate = instance !== undefined && Number(instance.generation) >= generation;
  return connected && isCurrent && isUpToDate && instance.state === "running";
}

/** True if a primary that is down may still start. Replicas that start together with it wait for it. */
function mayStart(primary: ObservedNode | undefined): boolean {
  const { state } = primary?.machine?.status ?? {};
  return state !== undefined && state !== "failed" && state !== "unreachable" && primary?.instance?.state !== "failed";
}

/** True if the replica has data, so that its engine can start without a primary. */
function hasData({ node, instance }: ObservedNode): boolean {
  return node.joining !== true && instance !== undefined;
}
