import { type ErrorKey, HoldfastError } from "@holdfast/common/errors.ts";
import type { Index } from "./object-index.ts";

/** How much of something one owner may have. It is declared with the kind whose objects take it. */
export interface Quota<R> {
  /** Such as "storageGb"; `quotaField` is how the API spells it. Stored where operators set it, so it never changes. */
  readonly name: string;
  /** For people, such as "GB of storage". */
  readonly words: string;
  /** For an organization: unless operators set another one. */
  readonly limit: number;
  /** The amount that one object takes; absent: one. */
  amountOf?(object: R): number;
  /** The owner under whose key the index has the object. Absent: the organization. */
  readonly ownerOf?: Index<R>;
  /** Absent: QUOTA_EXCEEDED. */
  readonly error?: ErrorKey;
  /** Organizations that one person made have one each; else they have one together. */
  readonly isEachs?: true;
}

/** The amount that these objects take together. */
export function usedOf<R>(quota: Quota<R>, objects: readonly R[]): number {
  return objects.reduce((sum, object) => sum + (quota.amountOf?.(object) ?? 1), 0);
}

/** As the API spells it. */
export function quotaField({ name }: Pick<Quota<unknown>, "name">): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Throws with the figures when these objects of one owner leave no room for one more. `who` begins a sentence. */
export function requireRoom<R>(quota: Quota<R>, objects: readonly R[], who: string): void {
  requireAmount(quota, { used: usedOf(quota, objects), asked: 1, limit: quota.limit }, who);
}

/** Throws with the figures when the amount asked for exceeds the quota. `who` begins a sentence: "The service has". */
export function requireAmount(
  quota: Pick<Quota<unknown>, "name" | "words" | "error">,
  figures: { readonly used: number; readonly asked: number; readonly limit: number },
  who: string,
): void {
  const { used, asked, limit } = figures;
  if (used + asked <= limit) return;
  throw new HoldfastError(
    quota.error ?? "QUOTA_EXCEEDED",
    `${who} ${used} of ${limit} ${quota.words}; ${asked} more is too many.`,
    { members: { quota: quotaField(quota), used, asked, limit } },
  );
}
