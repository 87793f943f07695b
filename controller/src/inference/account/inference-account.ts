import { defineKind } from "#kernel/store/kind.ts";
import { newMetadata, type Resource } from "#kernel/store/resource.ts";

/**
 * What was used of one limit and who may use the rest (accounts.ts in common). It is written before a process of the proxy may use
 * anything, so that all of them together never pass the limit.
 */
export type InferenceAccount = Resource<Readonly<Record<string, never>>, AccountStatus>;

export const inferenceAccountKind = defineKind<InferenceAccount>("inference-account", { goesWithOrganization: true });

export interface AccountStatus {
  /** What calls that ended have used. */
  readonly settled: number;
  /** What each process may use beyond that; below 0 where calls used more than they had reserved. */
  readonly holds: Readonly<Record<string, number>>;
  /** What is asked back of the holders; null for nothing. */
  readonly recall: Recall | null;
  /** Of an organization's cost: since when calls are refused; null while they are not. */
  readonly circuitOpenedAt: number | null;
  /** When inference.budget_warning happened; null before. */
  readonly warnedAt: number | null;
  /** What processes held when they were declared lost; it counts for nothing once they are back. Absent for none. */
  readonly unaccounted?: Readonly<Record<string, number>>;
}

export interface Recall {
  readonly id: string;
  /** The process that it is for; empty where a limit was lowered. */
  readonly by: string;
  readonly need: number;
  /** Who is asked. */
  readonly from: readonly string[];
  /** What calls under way had reserved, by the process that answered. */
  readonly answered: Readonly<Record<string, number>>;
  /** Who has not answered by then does not. */
  readonly until: number;
}

export const emptyAccount: AccountStatus = {
  settled: 0,
  holds: {},
  recall: null,
  circuitOpenedAt: null,
  warnedAt: null,
};

export function newAccount(id: string, organizationId: string, now: number): InferenceAccount {
  return { metadata: newMetadata(id, now, { organizationId }), spec: {}, status: emptyAccount };
}
