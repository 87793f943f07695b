import { lookUp } from "@holdfast/common/look-up.ts";
import type { AccountStatus, Recall } from "./inference-account.ts";

/** A process that wants to hold more. */
export interface HoldAsked {
  /** Of the recall that it may need. */
  readonly id: string;
  readonly processId: string;
  readonly need: number;
}

/** What is known of the processes. */
export interface Holders {
  /** Who can be asked. */
  readonly connected: readonly string[];
  readonly now: number;
}

export type HoldStep =
  | { readonly kind: "grant"; readonly amount: number }
  | { readonly kind: "recall"; readonly recall: Recall }
  /** Until the account or a process changes, or the recall is over. */
  | { readonly kind: "wait" };

/** A holder that does not answer within this time keeps what it has. */
export const recallMs = 1_000;

/** What nobody used or may use. */
export function freeOf({ settled, holds }: Pick<AccountStatus, "settled" | "holds">, limit: number): number {
  return limit - settled - heldOf(holds);
}

/** What processes may use together. */
export function heldOf(holds: AccountStatus["holds"]): number {
  return Object.values(holds).reduce((sum, held) => sum + Math.max(0, held), 0);
}

/**
 * Pure: what is done for a process that wants more. It gets it out of what is free, with a share for the calls to come: a lone
 * process gets all. Where too little is free, what others do not use is asked back first, so that nobody is refused while there is
 * enough; then it gets what there is.
 */
export function planHold(account: AccountStatus, limit: number, asked: HoldAsked, holders: Holders): HoldStep {
  const free = Math.max(0, freeOf(account, limit));
  const { id, processId, need } = asked;
  if (free >= need) {
    const share = Math.floor((free - need) / Math.max(1, holders.connected.length));
    return { kind: "grant", amount: need + share };
  }
  const { recall } = account;
  if (recall !== null && recall.id === id) {
    return isOver(recall, holders) ? { kind: "grant", amount: free } : { kind: "wait" };
  }
  if (recall !== null && !isOver(recall, holders)) return { kind: "wait" };
  const from = holders.connected.filter((other) => other !== processId && (lookUp(account.holds, other) ?? 0) > 0);
  if (from.length === 0) return { kind: "grant", amount: free };
  const until = holders.now + recallMs;
  return { kind: "recall", recall: { id, by: processId, need: need - free, from, answered: {}, until } };
}

/** Has everybody answered who can? */
export function isOver({ from, answered, until }: Recall, { connected, now }: Holders): boolean {
  return now >= until || from.every((each) => lookUp(answered, each) !== undefined || !connected.includes(each));
}

/** The account after a grant, which ends the recall that it was for. */
export function granted(account: AccountStatus, { id, processId }: HoldAsked, amount: number): AccountStatus {
  const recall = account.recall?.id === id ? null : account.recall;
  return { ...account, recall, holds: withHold(account.holds, processId, amount) };
}

/** The account after a process gave something back; it may answer a recall with it. */
export function released(
  account: AccountStatus,
  processId: string,
  { amount, reserved, recallId }: { readonly amount: number; readonly reserved: number; readonly recallId: string },
): AccountStatus {
  const { recall } = account;
  return {
    ...account,
    holds: withHold(account.holds, processId, -amount),
    recall: recall?.id === recallId ? { ...recall, answered: { ...recall.answered, [processId]: reserved } } : recall,
  };
}

/** The account after a process was declared lost: what it held may be used by others, and what it used of that is not known. */
export function withoutLost(account: AccountStatus, processId: string): AccountStatus {
  const { [processId]: held = 0, ...holds } = account.holds;
  const unaccounted = { ...account.unaccounted, ...(held > 0 && { [processId]: held }) };
  return { ...account, holds, unaccounted };
}

/** The account after calls of a process ended. */
export function settledBy(account: AccountStatus, processId: string, amount: number): AccountStatus {
  return {
    ...account,
    settled: account.settled + amount,
    holds: withHold(account.holds, processId, -amount),
  };
}

function withHold(holds: AccountStatus["holds"], processId: string, more: number): AccountStatus["holds"] {
  const { [processId]: before = 0, ...others } = holds;
  const held = before + more;
  return held === 0 ? others : { ...others, [processId]: held };
}

/**
 * Pure: does the circuit open now? When the month has cost the limit; or when a small call, of a tenth of the limit at most, did not
 * fit and nothing that is under way can give anything back.
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
