import type { Index } from "./object-index.ts";
import type { Quota } from "./quota.ts";
import type { KindName, Resource } from "./resource.ts";

/** A kind of object: everything that the platform must know of all objects of the kind, wherever it meets them. */
export interface Kind<R> extends KindName {
  /** Name of its key range; stored, so it never changes. */
  readonly name: string;
  /** Reads a stored object, and upgrades the form of older versions; it keeps the fields that it does not know. */
  parse(value: string): R;
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

/**
 * Declares a kind beside its resource. Objects are read as JSON and stay when their organization goes, unless said
 * otherwise.
 */
export function defineKind<R extends Resource<unknown, unknown>>(
  name: string,
  options: Partial<Omit<Kind<R>, "name">> = {},
): Kind<R> {
  return { name, parse: JSON.parse, goesWithOrganization: false, indexes: [], quotas: [], ...options };
}
