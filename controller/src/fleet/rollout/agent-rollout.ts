import type { AgentVersion } from "@holdfast/common/agent-package.ts";
import { next } from "@holdfast/common/machine.ts";
import { newMetadata, nextMetadata, type Resource } from "#kernel/store/resource.ts";
import { type AgentRolloutEvent, type AgentRolloutState, agentRolloutLifecycle } from "./agent-rollout-lifecycle.ts";
import { defineKind } from "#kernel/store/kind.ts";

/** The rollout of one agent release to all machines. There is a single object of this kind. */
export type AgentRollout = Resource<AgentRolloutSpec, AgentRolloutStatus>;

export const agentRolloutKind = defineKind<AgentRollout>("agent-rollout", {
  storedNames: { "status.failedUpgrades": "troubles", "status.failedUpgrades.*.isMachineFault": "isMachines" },
});

export interface AgentRolloutSpec extends AgentVersion {
  /** Id of the shared payload with the package. */
  readonly payloadId: string;
  readonly sha256: string;
  readonly sizeBytes: number;
  /**
   * Digests of replaced releases, newest first. A controller that still ships one of them does not offer it again
   * automatically.
   */
  readonly replaced: readonly string[];
}

export interface AgentRolloutStatus {
  readonly state: AgentRolloutState;
  /** Reason of a halt. */
  readonly reason: string;
  /** Stage: 0 is the upgrade of a single machine, n is the n-th share of the rollout rate. */
  readonly stage: number;
  /** Time since which all machines of the stage have the release, in ms since 1970; null while some do not. */
  readonly soakingSince: number | null;
  /** Machines whose upgrade failed, by id. */
  readonly failedUpgrades: Readonly<Record<string, FailedUpgrade>>;
}

export interface FailedUpgrade {
  /** Number of attempts so far. */
  readonly attempts: number;
  /** Time of the next attempt in milliseconds since 1970; null: an operator has to request it. */
  readonly retryAt: number | null;
  readonly reason: string;
  /** True if the machine caused the failure, such as by a full disk; it does not count against the release. */
  readonly isMachineFault?: boolean;
}

export const rolloutId = "agents";
const replacedMax = 20;

export function payloadIdOf(digest: string): string {
  return `shared-agent-${digest}`;
}

/** The rollout of the first release. */
export function newRollout(release: Omit<AgentRolloutSpec, "replaced">, now: number): AgentRollout {
  return {
    metadata: newMetadata(rolloutId, now),
    spec: { ...release, replaced: [] },
    status: { state: "Rolling", reason: "", stage: 0, soakingSince: null, failedUpgrades: {} },
  };
}

/** The rollout with another release. */
export function withRelease(rollout: AgentRollout, release: Omit<AgentRolloutSpec, "replaced">, now: number) {
  const { metadata, spec } = rollout;
  const replaced = [spec.digest, ...spec.replaced].filter((digest) => digest !== release.digest).slice(0, replacedMax);
  const after: AgentRollout = {
    ...rollout,
    metadata: nextMetadata(metadata, now),
    spec: { ...release, replaced },
  };
  return withEvent(after, "released", now) ?? after;
}

/** The rollout after the event; undefined if the event is not allowed in its state. */
export function withEvent(
  rollout: AgentRollout,
  event: AgentRolloutEvent,
  now: number,
  reason = "",
): AgentRollout | undefined {
  const row = next(agentRolloutLifecycle, rollout.status.state, event);
  if (row === undefined) return undefined;
  const [, , state, effect] = row;
  const { status, metadata } = rollout;
  const retried = Object.fromEntries(
    Object.entries(status.failedUpgrades).map(([id, failure]) => [id, { ...failure, retryAt: now }]),
  );
  const change = {
    none: {},
    warn: {},
    startOver: { stage: 0, soakingSince: null, failedUpgrades: {} },
    retryFailures: { failedUpgrades: retried },
  }[effect];
  return { ...rollout, metadata: { ...metadata, updatedAt: now }, status: { ...status, ...change, state, reason } };
}

/** True if `release` is later than `other`, by the numbers in both texts. A release without numbers is the earliest. */
export function isLater(release: string, other: string): boolean {
  const [a, b] = [numbersOf(release), numbersOf(other)];
  for (let at = 0; at < Math.max(a.length, b.length); at += 1) {
    const difference = (a[at] ?? 0) - (b[at] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return false;
}

function numbersOf(release: string): number[] {
  return release
    .split(/[^0-9]+/)
    .filter((part) => part !== "")
    .map(Number);
}
