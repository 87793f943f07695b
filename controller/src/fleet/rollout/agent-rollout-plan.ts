import { lookUp } from "@holdfast/common/look-up.ts";
import type { AgentRollout, AgentRolloutStatus, FailedUpgrade } from "./agent-rollout.ts";
import type { AgentRolloutEvent } from "./agent-rollout-lifecycle.ts";
import type { RolloutRate } from "./rollout-rate.ts";

/** Current facts about one machine's agent. */
export interface AgentFacts {
  readonly machineId: string;
  /** True for a machine of the warm pool. These machines are upgraded first. */
  readonly isWaiting: boolean;
  readonly online: boolean;
  readonly digest: string;
  /** True if its keeper supports agent handover. */
  readonly canHandOver: boolean;
  /** True if its last observation has no unhealthy check, or there is none. */
  readonly healthy: boolean;
  /** State of the task of the next attempt; undefined before it is submitted. */
  readonly task:
    | { readonly status: "open" }
    | { readonly status: "completed" }
    | {
        readonly status: "failed";
        readonly reason: string;
        readonly retryable: boolean;
        /** True if the machine has no space for a second agent, which is no failure of the release. */
        readonly isMachineFault: boolean;
      }
    | undefined;
}

/**
 * State of one machine in the rollout. needs_start: its keeper has no agent handover, and a restart of the machine
 * upgrades it.
 */
export type AgentState = "current" | "behind" | "upgrading" | "failed" | "needs_start" | "unreachable";

export interface RolloutPlan {
  readonly status: AgentRolloutStatus;
  readonly event: AgentRolloutEvent | undefined;
  readonly reason: string;
  /** Ids of machines whose upgrade starts now. */
  readonly begin: readonly string[];
  /** Latest time of the next plan, in milliseconds since 1970. */
  readonly recheckAt: number | undefined;
}

const maxAttempts = 3;
const retryDelayMs = 30_000;
/**
 * Time that machines have to reconnect after a reboot of their host. After the end of a controller they need seconds.
 */
const reconnectTimeoutMs = 120_000;
const unhealthyReason = "Its engine was unhealthy after the upgrade.";

export function stateOf({ spec, status }: AgentRollout, agent: AgentFacts): AgentState {
  if (!agent.online) return "unreachable";
  if (agent.digest === spec.digest) return "current";
  if (!agent.canHandOver) return "needs_start";
  if (agent.task?.status === "open") return "upgrading";
  return lookUp(status.failedUpgrades, agent.machineId)?.retryAt === null ? "failed" : "behind";
}

/**
 * Computes the next step of the rollout. The first machine is upgraded alone, then each stage raises the share of
 * upgraded machines, and is observed for `soakMs`. Too many failed, lost or unhealthy machines halt the rollout.
 */
export function planAgentRollout(
  rollout: AgentRollout,
  agents: readonly AgentFacts[],
  rate: RolloutRate,
  now: number,
): RolloutPlan {
  const failedUpgrades = recordFailures(rollout, agents, rate, now);
  const recorded: AgentRollout = { ...rollout, status: { ...rollout.status, failedUpgrades } };
  const { status } = recorded;
  const of = (state: AgentState) => agents.filter((agent) => stateOf(recorded, agent) === state);
  const [current, behind, failed] = [of("current"), of("behind"), of("failed")];
  // Machines that disconnected after the start of their upgrade count, so that a release that disconnects agents is
  // detected.
  const offline = agents.filter(({ online, task }) => !online && task !== undefined);
  const upgrading = [...of("upgrading"), ...offline.filter(({ task }) => task?.status === "open")];
  const lost = offline.filter(({ task }) => task?.status !== "open");
  // A machine that is unhealthy before its upgrade proves nothing about the release.
  const ready = behind.filter(({ healthy }) => healthy);
  const unchanged = { status, event: undefined, reason: "", begin: [], recheckAt: undefined };
  // A machine without space proves nothing about the release.
  const releaseFailures = failed.filter(({ machineId }) => lookUp(failedUpgrades, machineId)?.isMachineFault !== true);
  if (status.state === "Completed") {
    const counted = current.length + releaseFailures.length;
    const isFinished = ready.length === 0 && !exceedsFailureLimit(releaseFailures, counted, rate);
    return isFinished ? unchanged : { ...unchanged, event: "machinesBehind", recheckAt: now };
  }
  // After a controller's start no machine is connected yet.
  if (status.state !== "Rolling" || agents.every(({ online }) => !online)) return unchanged;

  // A machine that waits for its next attempt counts in the stage, so no other machine is upgraded in its place.
  const retrying = ready.filter(({ machineId }) => lookUp(failedUpgrades, machineId) !== undefined);
  const untried = ready.filter(({ machineId }) => lookUp(failedUpgrades, machineId) === undefined);
  const all = current.length + behind.length + upgrading.length + releaseFailures.length + lost.length;
  const startedCount = current.length + upgrading.length + releaseFailures.length + lost.length + retrying.length;
  const allowed = status.stage === 0 ? 1 : Math.ceil((all * shareOf(rate, status.stage)) / 100);
  if (exceedsFailureLimit(releaseFailures, startedCount, rate)) {
    const [first] = releaseFailures;
    const failure = lookUp(status.failedUpgrades, first?.machineId ?? "")?.reason ?? "";
    const reason = `${releaseFailures.length} of ${startedCount} machines failed, such as ${first?.machineId}: ${failure}`;
    return { ...unchanged, event: "failuresExceeded", reason };
  }
  const dueAt = ({ machineId }: AgentFacts) => lookUp(failedUpgrades, machineId)?.retryAt ?? now;
  const due = retrying.filter((agent) => dueAt(agent) <= now).map(({ machineId }) => machineId);
  const next = upgradeOrder(untried, rollout.spec.digest).slice(0, Math.max(0, allowed - startedCount));
  const begin = [...due, ...next].slice(0, Math.max(0, rate.concurrency - upgrading.length));
  if (begin.length > 0) return { ...unchanged, begin, status: { ...status, soakingSince: null }, recheckAt: now };
  if (upgrading.length > 0) return unchanged;
  if (retrying.length > 0) return { ...unchanged, recheckAt: Math.min(...retrying.map(dueAt)) };

  const since = status.soakingSince ?? now;
  const soaking = { ...status, soakingSince: since };
  if (now < since + rate.soakMs) return { ...unchanged, status: soaking, recheckAt: since + rate.soakMs };

  // Unhealthy machines that halted the rollout before do not halt it again after an operator resumed it.
  const unhealthy = current.filter(
    ({ healthy, machineId }) => !healthy && lookUp(failedUpgrades, machineId) === undefined,
  );
  if (exceedsFailureLimit(lost, startedCount, rate)) {
    if (now < since + rate.soakMs + reconnectTimeoutMs)
      return { ...unchanged, status: soaking, recheckAt: since + rate.soakMs + reconnectTimeoutMs };
    const reason = `${lost.length} of ${startedCount} machines are unreachable after their upgrade, such as ${lost[0]?.machineId}`;
    return { ...unchanged, status: soaking, event: "failuresExceeded", reason };
  }
  if (exceedsFailureLimit(unhealthy, startedCount, rate)) {
    const reason = `${unhealthy.length} of ${startedCount} machines are unhealthy after their upgrade, such as ${unhealthy[0]?.machineId}`;
    const reported = unhealthy.map(({ machineId }) => [
      machineId,
      { attempts: 0, retryAt: now, reason: unhealthyReason },
    ]);
    const halted = { ...soaking, failedUpgrades: { ...failedUpgrades, ...Object.fromEntries(reported) } };
    return { ...unchanged, status: halted, event: "failuresExceeded", reason };
  }
  if (ready.length === 0 || status.stage >= rate.shares.length) return { ...unchanged, event: "allUpgraded" };
  return { ...unchanged, status: { ...status, stage: status.stage + 1, soakingSince: null }, recheckAt: now };
}

/** The failed upgrades with the results of ended attempts. Machines that no longer exist are removed. */
function recordFailures({ spec, status }: AgentRollout, agents: readonly AgentFacts[], rate: RolloutRate, now: number) {
  const failedUpgrades: Record<string, FailedUpgrade> = { ...status.failedUpgrades };
  const seen = new Set(agents.map(({ machineId }) => machineId));
  for (const id of Object.keys(failedUpgrades)) if (!seen.has(id)) delete failedUpgrades[id];
  for (const { machineId, online, digest, task } of agents) {
    if (task === undefined || task.status === "open" || !online || digest === spec.digest) continue;
    const attempts = (lookUp(failedUpgrades, machineId)?.attempts ?? 0) + 1;
    const reason =
      task.status === "failed" ? task.reason : "The new agent took over, but the previous agent runs again.";
    const isRetried = attempts < maxAttempts && (task.status === "completed" || task.retryable);
    const waitMs = Math.min(retryDelayMs, rate.soakMs) * attempts;
    const isMachineFault = task.status === "failed" && task.isMachineFault;
    failedUpgrades[machineId] = {
      attempts,
      retryAt: isRetried ? now + waitMs : null,
      reason,
      ...(isMachineFault && { isMachineFault }),
    };
  }
  return failedUpgrades;
}

function exceedsFailureLimit(
  affected: readonly AgentFacts[],
  startedCount: number,
  { failurePct }: RolloutRate,
): boolean {
  return affected.length > (startedCount * failurePct) / 100;
}

function shareOf({ shares }: RolloutRate, stage: number): number {
  return (stage > 0 ? shares.at(stage - 1) : undefined) ?? 100;
}

/** Machines of the warm pool first, because they serve no clients; the others in an order that differs by release. */
function upgradeOrder(agents: readonly AgentFacts[], digest: string): string[] {
  const rank = ({ machineId, isWaiting }: AgentFacts) => `${isWaiting ? 0 : 1}${fnv1a(machineId + digest)}`;
  return agents
    .map((agent) => ({ id: agent.machineId, rank: rank(agent) }))
    .sort((a, b) => (a.rank < b.rank ? -1 : 1))
    .map(({ id }) => id);
}

/** FNV-1a hash (32 bits), as eight hex digits. */
function fnv1a(text: string): string {
  let hash = 0x811c9dc5;
  for (const char of text) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, "0");
}
