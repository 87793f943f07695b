import { lookUp } from "@holdfast/common/look-up.ts";
import type { AgentRollout, AgentRolloutStatus, Trouble } from "./agent-rollout.ts";
import type { AgentRolloutEvent } from "./agent-rollout-lifecycle.ts";

/** How fast, and how carefully. */
export interface RolloutPace {
  /** Percent of the machines, rising, after the first machine alone. */
  readonly shares: readonly number[];
  /** How long a stage is watched before the next one. */
  readonly soakMs: number;
  /** Halts when over this percent of what was begun failed; the first machine may never fail. */
  readonly failurePct: number;
  /** Machines that are upgraded at a time. */
  readonly atOnce: number;
}

/** One machine's agent as it is now. */
export interface AgentFacts {
  readonly machineId: string;
  /** Of nobody yet: the first ones to try. */
  readonly isWaiting: boolean;
  readonly online: boolean;
  readonly digest: string;
  /** Can its keeper have agents change places? */
  readonly able: boolean;
  /** Is its engine as it should be, as far as it told? */
  readonly healthy: boolean;
  /** What became of the attempt that its troubles count next. */
  readonly task:
    | { readonly status: "open" }
    | { readonly status: "completed" }
    | {
        readonly status: "failed";
        readonly reason: string;
        readonly retryable: boolean;
        /** The machine has no room for another agent, whatever release that is. */
        readonly isMachines: boolean;
      }
    | undefined;
}

/** How a machine stands to the release. */
export type AgentState = "current" | "behind" | "upgrading" | "failed" | "needs_start" | "unreachable";

export interface RolloutPlan {
  readonly status: AgentRolloutStatus;
  readonly event: AgentRolloutEvent | undefined;
  readonly reason: string;
  /** Machines whose upgrade begins now. */
  readonly begin: readonly string[];
  /** When to look again, at the latest. */
  readonly lookAt: number | undefined;
}

const mostAttempts = 3;
const retryMs = 30_000;
/** Machines come back from a controller that ended within seconds, and from a reboot of their host within this. */
const lostForMs = 120_000;
const notWell = "Its engine was not well after the upgrade.";

export function stateOf({ spec, status }: AgentRollout, agent: AgentFacts): AgentState {
  if (!agent.online) return "unreachable";
  if (agent.digest === spec.digest) return "current";
  if (!agent.able) return "needs_start";
  if (agent.task?.status === "open") return "upgrading";
  return lookUp(status.troubles, agent.machineId)?.retryAt === null ? "failed" : "behind";
}

/** What to do next: pure, and the same for each controller that looks. */
export function planAgentRollout(
  rollout: AgentRollout,
  agents: readonly AgentFacts[],
  pace: RolloutPace,
  now: number,
): RolloutPlan {
  const troubles = noteTroubles(rollout, agents, pace, now);
  const noted: AgentRollout = { ...rollout, status: { ...rollout.status, troubles } };
  const { status } = noted;
  const of = (state: AgentState) => agents.filter((agent) => stateOf(noted, agent) === state);
  const [current, behind, failed] = [of("current"), of("behind"), of("failed")];
  // A release that cuts agents off must not look as if it had never been tried.
  const away = agents.filter(({ online, task }) => !online && task !== undefined);
  const upgrading = [...of("upgrading"), ...away.filter(({ task }) => task?.status === "open")];
  const lost = away.filter(({ task }) => task?.status !== "open");
  // A machine that was unhealthy before says nothing of the release.
  const ready = behind.filter(({ healthy }) => healthy);
  const nothing = { status, event: undefined, reason: "", begin: [], lookAt: undefined };
  // A machine without room says nothing of the release.
  const faults = failed.filter(({ machineId }) => troubles[machineId]?.isMachines !== true);
  if (status.state === "Completed") {
    const known = current.length + faults.length;
    const isOver = ready.length === 0 && !isTooMany(faults, known, pace);
    return isOver ? nothing : { ...nothing, event: "machinesBehind", lookAt: now };
  }
  // Controllers that come up hear of machines one after the other.
  if (status.state !== "Rolling" || agents.every(({ online }) => !online)) return nothing;

  // A machine that waits for another attempt counts in the stage: no other machine is tried in its place.
  const retrying = ready.filter(({ machineId }) => troubles[machineId] !== undefined);
  const fresh = ready.filter(({ machineId }) => troubles[machineId] === undefined);
  const all = current.length + behind.length + upgrading.length + faults.length + lost.length;
  const begun = current.length + upgrading.length + faults.length + lost.length + retrying.length;
  const allowed = status.stage === 0 ? 1 : Math.ceil((all * shareOf(pace, status.stage)) / 100);
  if (isTooMany(faults, begun, pace)) {
    const [first] = faults;
    const why = lookUp(status.troubles, first?.machineId ?? "")?.reason ?? "";
    const reason = `${faults.length} of ${begun} machines failed, such as ${first?.machineId}: ${why}`;
    return { ...nothing, event: "failuresExceeded", reason };
  }
  const dueAt = ({ machineId }: AgentFacts) => troubles[machineId]?.retryAt ?? now;
  const due = retrying.filter((agent) => dueAt(agent) <= now).map(({ machineId }) => machineId);
  const next = inOrder(fresh, rollout.spec.digest).slice(0, Math.max(0, allowed - begun));
  const begin = [...due, ...next].slice(0, Math.max(0, pace.atOnce - upgrading.length));
  if (begin.length > 0) return { ...nothing, begin, status: { ...status, soakingSince: null }, lookAt: now };
  if (upgrading.length > 0) return nothing;
  if (retrying.length > 0) return { ...nothing, lookAt: Math.min(...retrying.map(dueAt)) };

  const since = status.soakingSince ?? now;
  const soaking = { ...status, soakingSince: since };
  if (now < since + pace.soakMs) return { ...nothing, status: soaking, lookAt: since + pace.soakMs };

  // What an operator was told of once is his to judge.
  const unwell = current.filter(({ healthy, machineId }) => !healthy && troubles[machineId] === undefined);
  if (isTooMany(lost, begun, pace)) {
    if (now < since + pace.soakMs + lostForMs)
      return { ...nothing, status: soaking, lookAt: since + pace.soakMs + lostForMs };
    const reason = `${lost.length} of ${begun} machines are unreachable after their upgrade, such as ${lost[0]?.machineId}`;
    return { ...nothing, status: soaking, event: "failuresExceeded", reason };
  }
  if (isTooMany(unwell, begun, pace)) {
    const reason = `${unwell.length} of ${begun} machines are not well after their upgrade, such as ${unwell[0]?.machineId}`;
    const told = unwell.map(({ machineId }) => [machineId, { attempts: 0, retryAt: now, reason: notWell }]);
    const halted = { ...soaking, troubles: { ...troubles, ...Object.fromEntries(told) } };
    return { ...nothing, status: halted, event: "failuresExceeded", reason };
  }
  if (ready.length === 0 || status.stage >= pace.shares.length) return { ...nothing, event: "allUpgraded" };
  return { ...nothing, status: { ...status, stage: status.stage + 1, soakingSince: null }, lookAt: now };
}

/** With what became of attempts; a machine that has the release is in no trouble. */
function noteTroubles({ spec, status }: AgentRollout, agents: readonly AgentFacts[], pace: RolloutPace, now: number) {
  const troubles: Record<string, Trouble> = { ...status.troubles };
  const seen = new Set(agents.map(({ machineId }) => machineId));
  for (const id of Object.keys(troubles)) if (!seen.has(id)) delete troubles[id];
  for (const { machineId, online, digest, task } of agents) {
    if (task === undefined || task.status === "open" || !online || digest === spec.digest) continue;
    const attempts = (lookUp(troubles, machineId)?.attempts ?? 0) + 1;
    const reason = task.status === "failed" ? task.reason : "It took over, and the agent of before runs again.";
    const again = attempts < mostAttempts && (task.status === "completed" || task.retryable);
    const waitMs = Math.min(retryMs, pace.soakMs) * attempts;
    const isMachines = task.status === "failed" && task.isMachines;
    troubles[machineId] = { attempts, retryAt: again ? now + waitMs : null, reason, ...(isMachines && { isMachines }) };
  }
  return troubles;
}

function isTooMany(some: readonly AgentFacts[], begun: number, { failurePct }: RolloutPace): boolean {
  return some.length > (begun * failurePct) / 100;
}

function shareOf({ shares }: RolloutPace, stage: number): number {
  return (stage > 0 ? shares.at(stage - 1) : undefined) ?? 100;
}

/** Waiting machines first, as they serve nobody; the others in an order that differs with each release. */
function inOrder(agents: readonly AgentFacts[], digest: string): string[] {
  const rank = ({ machineId, isWaiting }: AgentFacts) => `${isWaiting ? 0 : 1}${scatter(machineId + digest)}`;
  return agents
    .map((agent) => ({ id: agent.machineId, rank: rank(agent) }))
    .sort((a, b) => (a.rank < b.rank ? -1 : 1))
    .map(({ id }) => id);
}

/** FNV-1a, as eight hex digits. */
function scatter(text: string): string {
  let hash = 0x811c9dc5;
  for (const char of text) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, "0");
}
