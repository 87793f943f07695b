import { type ErrorKey, HoldfastError } from "@holdfast/common/errors.ts";
import type { Index } from "./resource.ts";

/** A limit on objects of one owner, or on an amount that they use. Declared with the kind of the objects. */
export interface Quota<R> {
  /**
   * Name, such as "storageGb"; `quotaField` is its name in the API. It is stored with operators' limits, so it never
   * changes.
   */
  readonly name: string;
  /** Unit for users, such as "GB of storage". */
  readonly label: string;
  /** Default limit of an organization; operators can set another one. */
  readonly limit: number;
  /** Largest limit that an operator can set; absent: `defaultLimitMax`. */
  readonly limitMax?: number;
  /** The amount that one object uses; absent: 1. */
  amountOf?(object: R): number;
  /** Index that finds the objects of an owner; absent: the owner is the organization. */
  readonly ownerOf?: Index<R>;
  /** Error of an exceeded quota; absent: QUOTA_EXCEEDED. */
  readonly error?: ErrorKey;
  /** True: each organization has its own limit. Absent: organizations that one user created share one limit. */
  readonly isPerOrganization?: true;
}

/** Largest limit of a quota that declares none. */
export const defaultLimitMax = 100_000;

/** The sum of the amounts that these objects use. */
export function usedOf<R>(quota: Quota<R>, objects: readonly R[]): number {
  return objects.reduce((sum, object) => sum + (quota.amountOf?.(object) ?? 1), 0);
}

/** The name in the API: `storage_gb` of `storageGb`. */
export function quotaField({ name }: Pick<Quota<unknown>, "name">): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * Throws the quota's error if the objects of one owner have reached its limit. `subject` begins the sentence, such as
 * "The service has".
 */
export function requireCapacity<R>(quota: Quota<R>, objects: readonly R[], subject: string): void {
  requireAmount(quota, { used: usedOf(quota, objects), requested: 1, limit: quota.limit }, subject);
}

/** Throws the quota's error, with the figures, when `requested` exceeds the limit. `subject`: "The service has". */
export function requireAmount(
  quota: Pick<Quota<unknown>, "name" | "label" | "error">,
  figures: { readonly used: number; readonly requested: number; readonly limit: number },
  subject: string,
): void {
  const { used, requested, limit } = figures;
  if (used + requested <= limit) return;
  throw new HoldfastError(
    quota.error ?? "QUOTA_EXCEEDED",
    `${subject} ${used} of ${limit} ${quota.label}; ${requested} more is too many.`,
    // oxlint-disable-next-line holdfast/names -- a member of the API
    { members: { quota: quotaField(quota), used, asked: requested, limit } },
  );
}
