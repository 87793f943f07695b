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

/** Minimum version of the keeper protocol, which has agent handover. */
const handoverProtocol = 2;
const transitionalStates: ReadonlySet<string> = new Set(["preparing", "starting", "stopping", "failed"]);

/** Id of the task of the machine's next attempt: `agent-<generation>-<machine id>-<failed attempts>`. */
export function upgradeTaskId({ metadata, status }: AgentRollout, machineId: string): string {
  return `agent-${metadata.generation}-${machineId}-${lookUp(status.failedUpgrades, machineId)?.attempts ?? 0}`;
}

/** Facts about one machine's agent, from the caches. */
export function agentFactsOf(
  rollout: AgentRollout,
  { metadata, spec }: MachineObject,
  { fleet }: AgentFactsDeps,
): AgentFacts {
  const { id: machineId } = metadata;
  const session = fleet.session(machineId);
  const instance = fleet.observation(machineId)?.instance;
  const isUnhealthy = instance?.checks.some(({ status }) => status === "unhealthy") ?? false;
  return {
    machineId,
    isWaiting: spec.owner === null,
    online: session !== undefined,
    digest: session?.agentDigest ?? "",
    canHandOver: (session?.keeperProtocol ?? 0) >= handoverProtocol,
    healthy: instance === undefined || !(isUnhealthy || transitionalStates.has(instance.state)),
    task: taskOf(fleet.task(upgradeTaskId(rollout, machineId))),
  };
}

/** Facts about the agents of all machines that are on and not being deleted. */
export function allAgentFacts(rollout: AgentRollout, deps: AgentFactsDeps): AgentFacts[] {
  return [...deps.machines.values()]
    .filter(({ object }) => object.metadata.deletionRequestedAt === undefined && object.spec.power === "on")
    .map(({ object }) => agentFactsOf(rollout, object, deps));
}

function taskOf(task: ReturnType<Fleet["task"]>): AgentFacts["task"] {
  if (task === undefined) return undefined;
  if (task.status === "completed") return { status: "completed" };
  if (task.status !== "failed") return { status: "open" };
  const { message = "The upgrade did not end in time.", retryable = false, code = "" } = task.result?.failure ?? {};
  return { status: "failed", reason: message, retryable, isMachineFault: code === "no_room" };
}
