import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, nextMetadata, type Stored } from "#kernel/store/resource.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import {
  type DatabaseUserObject,
  databaseUserId,
  databaseUserKind,
  usersOfService,
} from "../contents/user/database-user.ts";
import { type ManagedServiceObject, managedServiceKind } from "../service/managed-service.ts";
import { type FilesKeyObject, isFilesKey, type KeyAccess, newFilesKey } from "./files-key.ts";

export interface FilesKeyChangesDeps {
  readonly users: Collection<DatabaseUserObject>;
  readonly sealer: Pick<Sealer, "seal" | "open">;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** A key with its secret. */
export interface FilesKeyPair {
  readonly key: FilesKeyObject;
  readonly secret: string;
}

/**
 * Changes of a service's keys in the caller's unit of work. Keys are settings of the service: a change of one raises
 * the generation of the settings, and the agent gives its servers the new list. A service is changed once a unit.
 */
export interface FilesKeyChanges {
  /** Keys of a service, once memory is as new as the given service. */
  keysOf(service: Stored<ManagedServiceObject>): Promise<readonly FilesKeyObject[]>;
  /** Adds a key. Throws NAME_TAKEN, WRONG_STATE, and NOT_POSSIBLE for too many keys. */
  add(
    unit: Changes,
    service: Stored<ManagedServiceObject>,
    requested: { readonly name: string; readonly access: KeyAccess; readonly consumerId?: string },
  ): Promise<FilesKeyPair>;
  /** Removes a key of `keysOf`. Throws WRONG_STATE. */
  remove(unit: Changes, service: Stored<ManagedServiceObject>, key: FilesKeyObject): void;
  secretOf(key: FilesKeyObject): string;
}

/** Keys of a service: a server reads all of them for each request. */
const maxKeys = 100;

export function createFilesKeyChanges({ users, sealer, clock, newId }: FilesKeyChangesDeps): FilesKeyChanges {
  /** Raises the generation, which also makes concurrent changes of keys conflict. */
  function deliver(unit: Changes, service: Stored<ManagedServiceObject>): void {
    const { metadata, spec } = service.object;
    if (metadata.deletionRequestedAt !== undefined)
      throw new HoldfastError("WRONG_STATE", "The service is being deleted.");
    unit.update(managedServiceKind, service, {
      ...service.object,
      metadata: nextMetadata(metadata, clock.now()),
      spec: { ...spec, instanceGeneration: spec.instanceGeneration + 1 },
    });
  }

  async function keysOf(service: Stored<ManagedServiceObject>): Promise<readonly FilesKeyObject[]> {
    await users.untilRevision(service.modRevision, 1_000);
    return usersOfService(users, service.object.metadata.id).filter(isFilesKey);
  }

  return {
    keysOf,

    async add(unit, service, { name, access, consumerId }) {
      const { id: serviceId, organizationId } = service.object.metadata;
      const present = await keysOf(service);
      if (present.some(({ spec }) => spec.key.name === name))
        throw new HoldfastError("NAME_TAKEN", `The service has a key ${name} already.`);
      if (present.length >= maxKeys)
        throw new HoldfastError("NOT_POSSIBLE", `A service has at most ${maxKeys} keys. Delete an unused one.`);
      const requested = { serviceId, organizationId, keyId: newId(), name, access, consumerId };
      const pair = newFilesKey(requested, sealer, clock.now());
      unit.create(databaseUserKind, pair.key);
      deliver(unit, service);
      return pair;
    },

    remove(unit, service, { spec }) {
      const stored = users.get(databaseUserId(spec.serviceId, spec.username));
      if (stored === undefined) return;
      unit.remove(databaseUserKind, stored);
      deliver(unit, service);
    },

    secretOf: ({ metadata, spec }) => sealer.open(spec.sealedPassword, keyOf(databaseUserKind, metadata.id)),
  };
}

/** The key of a consumer; undefined if it has none. */
export function keyOfConsumer(keys: readonly FilesKeyObject[], consumerId: string): FilesKeyObject | undefined {
  return keys.find(({ spec }) => spec.key.consumerId === consumerId);
}
