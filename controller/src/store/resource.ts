/** What every object in the store looks like. */
export interface Resource<Spec, Status> {
  readonly metadata: Metadata;
  /** What was asked for. */
  readonly spec: Spec;
  /** What is, as last observed. */
  readonly status: Status;
}

export interface Metadata {
  readonly id: string;
  readonly name: string;
  /** Empty for what belongs to the platform. */
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

/** Names of the kinds are the names of their key ranges. */
export type Kind =
  | "managed-service"
  | "host"
  | "machine"
  | "operation"
  | "task"
  | "database-user"
  | "engine-change"
  | "dns-record"
  | "organization"
  | "api-key"
  | "user"
  | "token"
  | "membership"
  | "credential-use"
  | "webhook"
  | "node-image"
  | "agent-rollout"
  | "maintenance-brake";

export const root = "/holdfast/v1";

/** Key of an object in the store. */
export function keyOf(kind: Kind, id: string): string {
  return `${root}/${kind}/${id}`;
}

/** What the keys of all objects of a kind begin with. */
export function prefixOf(kind: Kind): string {
  return `${root}/${kind}/`;
}

/** The second key that makes a name unique in its organization. Its value is the object's id. */
export function nameKeyOf(kind: Kind, organizationId: string, name: string): string {
  return `${root}/name/${kind}/${organizationId}/${name}`;
}

/** Id in the key of an object. */
export function idOf(key: string): string {
  return key.slice(key.lastIndexOf("/") + 1);
}
