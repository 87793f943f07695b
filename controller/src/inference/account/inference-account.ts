import { defineKind } from "#kernel/store/kind.ts";
import { newMetadata, type Resource } from "#kernel/store/resource.ts";

/**
 * The account of one limit (accounts.ts in common): settled amount, and the quota leases of proxy processes. A lease is
 * stored before the process may use it, so that all processes together never exceed the limit. Amounts are microcents,
 * tokens or requests, by the type of the account.
 */
export type InferenceAccount = Resource<Readonly<Record<string, never>>, AccountStatus>;

export const inferenceAccountKind = defineKind<InferenceAccount>("inference-account", {
  deletedWithOrganization: true,
  storedNames: { "status.leases": "holds" },
});

export interface AccountStatus {
  /** Amount that ended calls have used. */
  readonly settled: number;
  /**
   * Amount that each process may use in addition to `settled`, by process id; negative if its calls used more than they
   * had reserved.
   */
  readonly leases: Readonly<Record<string, number>>;
  /** The recall in progress; null if there is none. */
  readonly recall: Recall | null;
  /** Time since which calls of a cost account are refused, in milliseconds since 1970; null if they are not. */
  readonly circuitOpenedAt: number | null;
  /** Time of `inference.budget_warning` in milliseconds since 1970; null before. */
  readonly warnedAt: number | null;
  /** Time of the last `inference.usage_above_reservation` in milliseconds since 1970; absent before. */
  readonly aboveReservationAt?: number;
  /**
   * Leases of processes at the time when they were declared lost, by process id; ignored after a process has connected
   * again.
   */
  readonly unaccounted?: Readonly<Record<string, number>>;
}

export interface Recall {
  readonly id: string;
  /** Id of the process that needs quota; empty if the recall follows from a lowered limit. */
  readonly by: string;
  readonly need: number;
  /** Ids of the processes that have to release quota. */
  readonly from: readonly string[];
  /** Amounts that calls in flight have reserved, by id of the processes that have responded. */
  readonly answered: Readonly<Record<string, number>>;
  /** Deadline in milliseconds since 1970; later responses are ignored. */
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
