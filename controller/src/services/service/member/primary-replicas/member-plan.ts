import type { ManagedServiceObject } from "../../managed-service.ts";
import type { ObservedNode, ObservedService, ServiceStep } from "../../reconcile/observed-service.ts";
import { isReplicated } from "../members.ts";
import { replacementPrimary } from "../move-node.ts";
import { hasTakenOver, oldPrimaryLogEnd } from "./primary-change.ts";
import { isPrimary } from "./primary.ts";
import { nextInRollout } from "./rollout.ts";

/**
 * The steps of all members, in an order that is safe for replication. `planNode`: the steps of a node regardless
 * of the others, which are also the steps of a single node.
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
    // A primary that takes no settings has a deadline too: the change proceeds without its report.
    return [...(oldPrimaryLogEnd(service, observed) === undefined ? steps : []), { kind: "changePrimary" }];
  }
  const isPrimaryUp = primary !== undefined && isUp(primary, instanceGeneration);
  const steps = nodes.flatMap((member) => {
    if (member.node.leaving === true) return planLeaving(member);
    if (isPrimary(service, member.node)) return planNode(member);
    const own = planNode(member);
    // A replica follows a primary that takes writes; a replica that starts together with its primary waits for it.
    const waits = primaryChange === undefined ? !isPrimaryUp && !isSetUp(member) : !hasTakenOver(service, observed);
    const startsWithPrimary = service.status.state !== "Running" && member.instance?.state === "stopped";
    const allowed =
      waits || (startsWithPrimary && !isPrimaryUp && isComing(primary)) || !isReplicated(service.spec)
        ? own.filter(({ kind }) => kind !== "converge")
        : own;
    return service.spec.power === "off" ? inOrder(allowed, primary) : allowed;
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

/** The primary stops first, so that replicas receive all that it wrote. */
function inOrder(steps: ServiceStep[], primary: ObservedNode | undefined): ServiceStep[] {
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

/** True if a primary that is down may come up by itself; replicas that start with it wait for that. */
function isComing(primary: ObservedNode | undefined): boolean {
  const { state } = primary?.machine?.status ?? {};
  return state !== undefined && state !== "failed" && state !== "unreachable" && primary?.instance?.state !== "failed";
}

/** True if it has data to start from without a primary. */
function isSetUp({ node, instance }: ObservedNode): boolean {
  return node.joining !== true && instance !== undefined;
}
