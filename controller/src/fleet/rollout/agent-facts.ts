import { lookUp } from "@holdfast/common/look-up.ts";
import type { Fleet } from "../fleet.ts";
import type { MachineObject } from "../machine/machine.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { AgentRollout } from "./agent-rollout.ts";
import type { AgentFacts } from "./agent-rollout-plan.ts";

export interface AgentFactsDeps {
  readonly machines: Pick<Collection<MachineObject>, "values">;
  readonly fleet: Pick<Fleet, "session" | "observation" | "task">;
}

/** The first version of a keeper that can have agents change places. */
const ableKeeper = 2;
const betweenStates: ReadonlySet<string> = new Set(["preparing", "starting", "stopping", "failed"]);

/** Of the attempt that a machine's troubles count next; the same for each controller. */
export function upgradeTaskId({ metadata, status }: AgentRollout, machineId: string): string {
  return `agent-${metadata.generation}-${machineId}-${lookUp(status.troubles, machineId)?.attempts ?? 0}`;
}

/** The agent of one machine, from what is in memory. */
export function agentFactsOf(
  rollout: AgentRollout,
  { metadata, spec }: MachineObject,
  { fleet }: AgentFactsDeps,
): AgentFacts {
  const { id: machineId } = metadata;
  const session = fleet.session(machineId);
  const instance = fleet.observation(machineId)?.instance;
  const unwell = instance?.checks.some(({ status }) => status === "unhealthy") ?? false;
  return {
    machineId,
    isWaiting: spec.owner === null,
    online: session !== undefined,
    digest: session?.agentDigest ?? "",
    able: (session?.keeperProtocol ?? 0) >= ableKeeper,
    healthy: instance === undefined || !(unwell || betweenStates.has(instance.state)),
    task: taskOf(fleet.task(upgradeTaskId(rollout, machineId))),
  };
}

/** Of all machines that are not about to go. */
export function allAgentFacts(rollout: AgentRollout, deps: AgentFactsDeps): AgentFacts[] {
  return [...deps.machines.values()]
    .filter(({ object }) => object.metadata.deletionRequestedAt === undefined && object.spec.power === "on")
    .map(({ object }) => agentFactsOf(rollout, object, deps));
}

function taskOf(task: ReturnType<Fleet["task"]>): AgentFacts["task"] {
  if (task === undefined) return undefined;
  if (task.status === "completed") return { status: "completed" };
  if (task.status !== "failed") return { status: "open" };
  const { message = "It did not end in time.", retryable = false, code = "" } = task.result?.failure ?? {};
  return { status: "failed", reason: message, retryable, isMachines: code === "no_room" };
}
