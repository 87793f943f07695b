/** The form of every object in the store. */
export interface Resource<Spec, Status> {
  readonly metadata: Metadata;
  /** The desired state. */
  readonly spec: Spec;
  /** The state as last observed. */
  readonly status: Status;
}

export interface Metadata {
  readonly id: string;
  readonly name: string;
  /** Empty for objects of the platform. */
  readonly organizationId: string;
  /** Raised by one whenever spec changes. */
  readonly generation: number;
  /** Milliseconds since 1970, like every time in the store. */
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly deletionRequestedAt?: number;
  readonly managedBy?: { readonly kind: string; readonly id: string };
}

/** Of an object that is made now: named by its id, and the platform's, unless something else is said. */
export function newMetadata(
  id: string,
  now: number,
  { name = id, organizationId = "" }: { readonly name?: string; readonly organizationId?: string } = {},
): Metadata {
  return { id, name, organizationId, generation: 1, createdAt: now, updatedAt: now };
}

/** The same once the spec was changed. */
export function nextMetadata(metadata: Metadata, now: number): Metadata {
  return { ...metadata, generation: metadata.generation + 1, updatedAt: now };
}

/** An object as read, with the revision that a change must name. */
export interface Stored<R> {
  readonly object: R;
  readonly modRevision: bigint;
}

/** A kind, by its name alone. */
export interface KindName {
  readonly name: string;
  /** Reason for names that are unique in the installation. Absent: a name is unique in its organization. */
  readonly globalNames?: string;
}

export const root = "/holdfast/v1";

/** Key of an object in the store. */
export function keyOf(kind: KindName, id: string): string {
  return `${root}/${kind.name}/${id}`;
}

/** The prefix of the keys of a kind's objects. */
export function prefixOf(kind: KindName): string {
  return `${root}/${kind.name}/`;
}

/** The second key that makes a name unique in its organization. Its value is the object's id. */
export function nameKeyOf(kind: KindName, organizationId: string, name: string): string {
  return `${root}/name/${kind.name}/${organizationId}/${name}`;
}

/** Id in the key of an object. */
export function idOf(key: string): string {
  return key.slice(key.lastIndexOf("/") + 1);
}
