import { defineKind } from "#kernel/store/kind.ts";
import { newMetadata, type Resource } from "#kernel/store/resource.ts";

/**
 * The account of one limit (accounts.ts in common): settled use, and the leases of proxy processes. A lease is stored
 * before the process may use it, so that all processes together never exceed the limit. Amounts are microcents, tokens
 * or requests, by the type of the account.
 */
export type InferenceAccount = Resource<Readonly<Record<string, never>>, AccountStatus>;

export const inferenceAccountKind = defineKind<InferenceAccount>("inference-account", {
  deletedWithOrganization: true,
  storedNames: { "status.leases": "holds" },
});

export interface AccountStatus {
  /** Use by calls that have ended. */
  readonly settled: number;
  /**
   * By process id: the amount that it may use beyond `settled`; negative where calls used more than they had reserved.
   */
  readonly leases: Readonly<Record<string, number>>;
  /** The recall in progress; null for none. */
  readonly recall: Recall | null;
  /** Cost accounts: time since which calls are refused, in milliseconds since 1970; null while they are not. */
  readonly circuitOpenedAt: number | null;
  /** Time of `inference.budget_warning` in milliseconds since 1970; null before. */
  readonly warnedAt: number | null;
  /** Time of the last `inference.usage_above_reservation` in milliseconds since 1970; absent before. */
  readonly aboveReservationAt?: number;
  /**
   * By process id: the lease at the time when it was declared lost; ignored once the process is back. Absent for none.
   */
  readonly unaccounted?: Readonly<Record<string, number>>;
}

export interface Recall {
  readonly id: string;
  /** Id of the process that needs quota; empty when the limit was lowered. */
  readonly by: string;
  readonly need: number;
  /** Ids of the processes that are asked to release. */
  readonly from: readonly string[];
  /** By process that answered: the amount that its calls in flight have reserved. */
  readonly answered: Readonly<Record<string, number>>;
  /** End of the recall in milliseconds since 1970; later answers do not count. */
  readonly until: number;
}

export const emptyAccount: AccountStatus = {
  settled: 0,
  leases: {},
  recall: null,
  circuitOpenedAt: null,
  warnedAt: null,
};

export function newAccount(id: string, organizationId: string, now: number): InferenceAccount {
  return { metadata: newMetadata(id, now, { organizationId }), spec: {}, status: emptyAccount };
}
