import type { AgentVersion } from "@holdfast/common/agent-package.ts";
import { next } from "@holdfast/common/machine.ts";
import { newMetadata, nextMetadata, type Resource } from "#kernel/store/resource.ts";
import { type AgentRolloutEvent, type AgentRolloutState, agentRolloutLifecycle } from "./agent-rollout-lifecycle.ts";
import { defineKind } from "#kernel/store/kind.ts";

/** The one release that all machines' agents are brought to. There is one such object. */
export type AgentRollout = Resource<AgentRolloutSpec, AgentRolloutStatus>;

export const agentRolloutKind = defineKind<AgentRollout>("agent-rollout");

export interface AgentRolloutSpec extends AgentVersion {
  /** Of the package that machines read, as a payload of every machine. */
  readonly payloadId: string;
  readonly sha256: string;
  readonly sizeBytes: number;
  /** Digests of releases that were replaced, the newest first: none of them comes back by itself. */
  readonly replaced: readonly string[];
}

export interface AgentRolloutStatus {
  readonly state: AgentRolloutState;
  /** Why it halted. */
  readonly reason: string;
  /** Which share of the machines it is at: 0 is the first machine. */
  readonly stage: number;
  /** Since when all machines of the stage have it; null while they do not. */
  readonly soakingSince: number | null;
  /** Machines whose upgrade did not go well, by id. */
  readonly troubles: Readonly<Record<string, Trouble>>;
}

export interface Trouble {
  /** How often it was tried. */
  readonly attempts: number;
  /** When it is tried again; null when an operator is waited for. */
  readonly retryAt: number | null;
  readonly reason: string;
  /** It is the machine's own, and does not count against the release. */
  readonly isMachines?: boolean;
}

export const rolloutId = "agents";
const mostReplaced = 20;

export function payloadIdOf(digest: string): string {
  return `shared-agent-${digest}`;
}

/** The rollout as it begins. */
export function newRollout(release: Omit<AgentRolloutSpec, "replaced">, now: number): AgentRollout {
  return {
    metadata: newMetadata(rolloutId, now),
    spec: { ...release, replaced: [] },
    status: { state: "Rolling", reason: "", stage: 0, soakingSince: null, troubles: {} },
  };
}

/** With this release in place of the one before. */
export function withRelease(rollout: AgentRollout, release: Omit<AgentRolloutSpec, "replaced">, now: number) {
  const { metadata, spec } = rollout;
  const replaced = [spec.digest, ...spec.replaced].filter((digest) => digest !== release.digest).slice(0, mostReplaced);
  const after: AgentRollout = {
    ...rollout,
    metadata: nextMetadata(metadata, now),
    spec: { ...release, replaced },
  };
  return withEvent(after, "released", now) ?? after;
}

/** After the event; undefined where it means nothing. */
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
  const forgiven = Object.fromEntries(
    Object.entries(status.troubles).map(([id, trouble]) => [id, { ...trouble, retryAt: now }]),
  );
  const change = {
    none: {},
    warn: {},
    startOver: { stage: 0, soakingSince: null, troubles: {} },
    forgive: { troubles: forgiven },
  }[effect];
  return { ...rollout, metadata: { ...metadata, updatedAt: now }, status: { ...status, ...change, state, reason } };
}

/** Is the one release later than the other? By the numbers of both; what has none is the earliest. */
export function isLater(one: string, other: string): boolean {
  const [a, b] = [numbersOf(one), numbersOf(other)];
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
