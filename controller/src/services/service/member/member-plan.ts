import type { ManagedServiceObject } from "../managed-service.ts";
import type { ObservedNode, ObservedService, ServiceStep } from "../observed-service.ts";
import { isPrimary, isReplicated } from "./members.ts";
import { successorInPlace } from "./move-node.ts";
import { hasTakenOver, yieldedAt } from "./succession.ts";
import { nextTurn } from "./turns.ts";

/**
 * Pure: what each member is told, and when. `planNode`: what a node by itself would be told. With one member it is told just
 * that.
 */
export function planMembers(
  service: ManagedServiceObject,
  observed: ObservedService,
  planNode: (node: ObservedNode) => ServiceStep[],
): ServiceStep[] {
  const { nodes } = observed;
  const { succession, instanceGeneration } = service.spec;
  const primary = nodes.find(({ node }) => isPrimary(service, node));
  if (succession?.step === "yield" || succession?.step === "fence") {
    const steps = nodes.filter(({ node }) => node.id === succession.from).flatMap(planNode);
    // A primary that takes no settings has a deadline too: the hand-over goes on without its answer.
    return [...(yieldedAt(service, observed) === undefined ? steps : []), { kind: "handOver" }];
  }
  const leads = primary !== undefined && isUp(primary, instanceGeneration);
  const steps = nodes.flatMap((member) => {
    if (member.node.leaving === true) return planLeaving(member);
    if (isPrimary(service, member.node)) return planNode(member);
    const own = planNode(member);
    // A replica follows who takes writes; one that starts with its primary waits for it.
    const waits = succession === undefined ? !leads && !isSetUp(member) : !hasTakenOver(service, observed);
    const begins = service.status.state !== "Running" && member.instance?.state === "stopped";
    const inTime =
      waits || (begins && !leads && isComing(primary)) || !isReplicated(service.spec)
        ? own.filter(({ kind }) => kind !== "converge")
        : own;
    return service.spec.power === "off" ? inOrder(inTime, primary) : inTime;
  });
  if (succession !== undefined) return [...steps, { kind: "handOver" }];
  const turn = nextTurn(service, observed);
  const to = turn?.kind === "switchOver" ? turn.to : successorInPlace(service, observed);
  return to === undefined ? steps : [...steps, { kind: "switchOver", to }];
}

function planLeaving({ node, machine }: ObservedNode): ServiceStep[] {
  if (machine === undefined) return [{ kind: "dropNode", node }];
  return machine.metadata.deletionRequestedAt === undefined ? [{ kind: "deleteMachine", node }] : [];
}

/** The primary stops first, so that replicas have all that it wrote. */
function inOrder(steps: ServiceStep[], primary: ObservedNode | undefined): ServiceStep[] {
  const isStopping = steps.some((step) => isShutdown(step));
  return isStopping && primary?.machine?.spec.power === "on" ? steps.filter((step) => !isShutdown(step)) : steps;
}

function isShutdown(step: ServiceStep): boolean {
  return (step.kind === "converge" && !step.running) || (step.kind === "powerMachine" && step.power === "off");
}

function isUp({ connected, isCurrent, instance }: ObservedNode, generation: number): boolean {
  const isHeld = instance !== undefined && Number(instance.generation) >= generation;
  return connected && isCurrent && isHeld && instance.state === "running";
}

/** May a primary that is not up come up by itself? Replicas that start with it are no use before. */
function isComing(primary: ObservedNode | undefined): boolean {
  const { state } = primary?.machine?.status ?? {};
  return state !== undefined && state !== "failed" && state !== "unreachable" && primary?.instance?.state !== "failed";
}

/** Does it have data that it goes on with by itself? */
function isSetUp({ node, instance }: ObservedNode): boolean {
  return node.joining !== true && instance !== undefined;
}
