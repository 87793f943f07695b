import { type StoredNames, storedFormat } from "@holdfast/common/stored-names.ts";
import type { Index, KindName, Resource } from "./resource.ts";
import type { Quota } from "./quota.ts";

/**
 * A type of stored object: its key range, its format, its indexes and quotas. It is declared in the file of its
 * resource.
 */
export interface Kind<R> extends KindName {
  /** Name of the kind, and of its key range. It is stored, so it never changes. */
  readonly name: string;
  /** Parses a stored object. Fields that this version does not define are preserved. */
  parse(value: string): R;
  /** Formats an object for the store; `parse` reverses it. */
  format(object: R): string;
  /** True: a reconciler deletes the objects of a deleted organization; until then they have no effect. */
  readonly deletedWithOrganization: boolean;
  /** Indexes of the kind's collection (`Collection.by`). */
  readonly indexes: readonly Index<R>[];
  /** Limits on the number or amount of objects of each owner. */
  readonly quotas: readonly Quota<R>[];
  /** Changes an object when the control plane is restored from a snapshot; absent: it is restored unchanged. */
  afterRestore?(object: R): R;
}

/** A kind without the type of its objects, for code that does not read them. */
export type AnyKind = Kind<Resource<unknown, unknown>>;

/** `parse` and `format` are for objects whose stored form differs in more than names. */
interface KindOptions<R> extends Partial<Omit<Kind<R>, "name">> {
  /** Fields whose name in code differs from their stored key. */
  readonly storedNames?: StoredNames;
}

/** Declares a kind. By default objects are stored as JSON and survive their organization. */
export function defineKind<R extends Resource<unknown, unknown>>(name: string, options: KindOptions<R> = {}): Kind<R> {
  const { storedNames = {}, ...rest } = options;
  return { name, ...storedFormat<R>(storedNames), deletedWithOrganization: false, indexes: [], quotas: [], ...rest };
}
