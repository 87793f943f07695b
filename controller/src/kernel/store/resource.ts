/** An object in the store, as in Kubernetes: metadata, desired state, observed state. */
export interface Resource<Spec, Status> {
  readonly metadata: Metadata;
  /** The desired state, which users and operators set. */
  readonly spec: Spec;
  /** The observed state, which reconcilers write. */
  readonly status: Status;
}

export interface Metadata {
  readonly id: string;
  readonly name: string;
  /** Empty for objects of the platform itself. */
  readonly organizationId: string;
  /** Incremented by each change of the spec. */
  readonly generation: number;
  /** Milliseconds since 1970, as every time in the store. */
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly deletionRequestedAt?: number;
  readonly managedBy?: { readonly kind: string; readonly id: string };
}

/** Metadata of a new object. Defaults: its name is its id, and it belongs to the platform. */
export function newMetadata(
  id: string,
  now: number,
  { name = id, organizationId = "" }: { readonly name?: string; readonly organizationId?: string } = {},
): Metadata {
  return { id, name, organizationId, generation: 1, createdAt: now, updatedAt: now };
}

/** The metadata after a change of the spec. */
export function nextMetadata(metadata: Metadata, now: number): Metadata {
  return { ...metadata, generation: metadata.generation + 1, updatedAt: now };
}

/** An object with the revision that its next change must name. */
export interface Stored<R> {
  readonly object: R;
  readonly modRevision: bigint;
}

/** A kind by its name. */
export interface KindName {
  readonly name: string;
  /** Reason why names are unique in the installation. Absent: names are unique in their organization. */
  readonly globalNames?: string;
}

export const root = "/holdfast/v1";

/** The etcd key of an object: `/holdfast/v1/<kind>/<id>`. */
export function keyOf(kind: KindName, id: string): string {
  return `${root}/${kind.name}/${id}`;
}

/** The key prefix of a kind's objects. */
export function prefixOf(kind: KindName): string {
  return `${root}/${kind.name}/`;
}

/** The key that makes a name unique in its organization. Its value is the object's id. */
export function nameKeyOf(kind: KindName, organizationId: string, name: string): string {
  return `${root}/name/${kind.name}/${organizationId}/${name}`;
}

/** The id in the key of an object. */
export function idOf(key: string): string {
  return key.slice(key.lastIndexOf("/") + 1);
}

/**
 * A secondary index: maps an object to its key, such as the id of its service, or to undefined if the object is not
 * indexed. The function itself identifies the index. Written as a method, so that it is bivariant: an index of objects
 * is usable for a subtype of them.
 */
export type Index<R> = { key(object: R): string | undefined }["key"];
