import { lookUp } from "@holdfast/common/look-up.ts";
import type { AccountStatus, Recall } from "./inference-account.ts";

/** A proxy process that needs a larger lease. */
export interface LeaseDemand {
  /** Id for the recall that the demand may start. */
  readonly id: string;
  readonly processId: string;
  readonly need: number;
}

/** Connected processes and the time, the inputs of the plan besides the account. */
export interface ProcessesContext {
  /** Ids of the processes that are connected and can respond to a recall. */
  readonly connected: readonly string[];
  readonly now: number;
}

export type LeaseStep =
  | { readonly kind: "grant"; readonly amount: number }
  | { readonly kind: "recall"; readonly recall: Recall }
  /** Wait until the account or a process changes, or the recall ends. */
  | { readonly kind: "wait" };

/** Deadline of a recall; a process that does not respond in time keeps its lease. */
export const recallMs = 1_000;

/** The amount of the limit that is neither settled nor leased. */
export function freeOf({ settled, leases }: Pick<AccountStatus, "settled" | "leases">, limit: number): number {
  return limit - settled - leasedOf(leases);
}

/** The sum of all leases. */
export function leasedOf(leases: AccountStatus["leases"]): number {
  return Object.values(leases).reduce((sum, leased) => sum + Math.max(0, leased), 0);
}

/**
 * The next step for a process that needs a larger lease. It is granted from the available amount, with a share for
 * coming calls; a single process gets all of it. If too little is available, unused parts of other leases are recalled
 * first, so that no call is refused while the quota suffices; then the process gets the available amount.
 */
export function planLease(
  account: AccountStatus,
  limit: number,
  demand: LeaseDemand,
  context: ProcessesContext,
): LeaseStep {
  const free = Math.max(0, freeOf(account, limit));
  const { id, processId, need } = demand;
  if (free >= need) {
    const share = Math.floor((free - need) / Math.max(1, context.connected.length));
    return { kind: "grant", amount: need + share };
  }
  const { recall } = account;
  if (recall !== null && recall.id === id) {
    return isRecallOver(recall, context) ? { kind: "grant", amount: free } : { kind: "wait" };
  }
  if (recall !== null && !isRecallOver(recall, context)) return { kind: "wait" };
  const from = context.connected.filter((other) => other !== processId && (lookUp(account.leases, other) ?? 0) > 0);
  if (from.length === 0) return { kind: "grant", amount: free };
  const until = context.now + recallMs;
  return { kind: "recall", recall: { id, by: processId, need: need - free, from, answered: {}, until } };
}

/** True if every connected process has responded, or the deadline has passed. */
export function isRecallOver({ from, answered, until }: Recall, { connected, now }: ProcessesContext): boolean {
  return now >= until || from.every((each) => lookUp(answered, each) !== undefined || !connected.includes(each));
}

/** The account after a grant, which ends its recall. */
export function granted(account: AccountStatus, { id, processId }: LeaseDemand, amount: number): AccountStatus {
  const recall = account.recall?.id === id ? null : account.recall;
  return { ...account, recall, leases: withLease(account.leases, processId, amount) };
}

/** The account after a process released a part of its lease, possibly in response to a recall. */
export function released(
  account: AccountStatus,
  processId: string,
  { amount, reserved, recallId }: { readonly amount: number; readonly reserved: number; readonly recallId: string },
): AccountStatus {
  const { recall } = account;
  return {
    ...account,
    leases: withLease(account.leases, processId, -amount),
    recall: recall?.id === recallId ? { ...recall, answered: { ...recall.answered, [processId]: reserved } } : recall,
  };
}

/**
 * The account after a process was declared lost: its lease becomes available, and moves to `unaccounted`, because its
 * use is unknown.
 */
export function withoutLost(account: AccountStatus, processId: string): AccountStatus {
  const { [processId]: leased = 0, ...leases } = account.leases;
  const unaccounted = { ...account.unaccounted, ...(leased > 0 && { [processId]: leased }) };
  return { ...account, leases, unaccounted };
}

/** The account after calls of a process were settled. */
export function settledBy(account: AccountStatus, processId: string, amount: number): AccountStatus {
  return {
    ...account,
    settled: account.settled + amount,
    leases: withLease(account.leases, processId, -amount),
  };
}

function withLease(leases: AccountStatus["leases"], processId: string, more: number): AccountStatus["leases"] {
  const { [processId]: before = 0, ...others } = leases;
  const leased = before + more;
  return leased === 0 ? others : { ...others, [processId]: leased };
}

/**
 * True if the circuit opens now: the month has cost the limit, or a small call (at most a tenth of the limit) did
 * not fit and no call in flight can release quota.
 */
export function opensCircuit(
  account: AccountStatus,
  limit: number,
  refused: { readonly least: number; readonly reserved: number } | undefined,
): boolean {
  if (account.circuitOpenedAt !== null) return false;
  if (account.settled >= limit) return true;
  return refused !== undefined && refused.reserved === 0 && refused.least <= limit / 10;
}
