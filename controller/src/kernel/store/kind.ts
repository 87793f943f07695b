import { type StoredNames, storedFormat } from "@holdfast/common/stored-names.ts";
import type { Index } from "./object-index.ts";
import type { Quota } from "./quota.ts";
import type { KindName, Resource } from "./resource.ts";

/** A kind of object: everything that the platform must know of all objects of the kind, wherever it meets them. */
export interface Kind<R> extends KindName {
  /** Name of its key range; stored, so it never changes. */
  readonly name: string;
  /** Reads a stored object. Fields that this version lacks stay in it. */
  parse(value: string): R;
  /** The text that the store has for an object; `parse` reads it. */
  format(object: R): string;
  /** True: such objects of an organization go after the organization went, and mean nothing from that moment on. */
  readonly goesWithOrganization: boolean;
  /** The keys that its memory finds objects by (`Collection.by`). */
  readonly indexes: readonly Index<R>[];
  /** Limits of its objects for each owner. */
  readonly quotas: readonly Quota<R>[];
  /** The object as it must be after a restore of the control plane from a snapshot with it; absent: as it was. */
  afterRestore?(object: R): R;
}

/** A kind whose objects are of no interest here. */
export type AnyKind = Kind<Resource<unknown, unknown>>;

interface KindOptions<R> extends Partial<Omit<Kind<R>, "name" | "parse" | "format">> {
  /** Fields whose name in code differs from their stored key. */
  readonly storedNames?: StoredNames;
}

/** Declares a kind beside its resource. Objects are stored as JSON and survive their organization by default. */
export function defineKind<R extends Resource<unknown, unknown>>(name: string, options: KindOptions<R> = {}): Kind<R> {
  const { storedNames = {}, ...rest } = options;
  return { name, ...storedFormat<R>(storedNames), goesWithOrganization: false, indexes: [], quotas: [], ...rest };
}
