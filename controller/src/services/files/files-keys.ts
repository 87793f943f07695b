import { create } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import type { Handlers } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { FilesAccess, type FilesService } from "@holdfast/proto/holdfast/v1/files_pb.ts";
import { mutate } from "#access/mutate.ts";
import { type Cursors, pageByName } from "#kernel/page/cursor.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { nextMetadata, type Stored } from "#kernel/store/resource.ts";
import type { Changes, UnitOfWork } from "#kernel/store/unit-of-work.ts";
import {
  type DatabaseUserObject,
  databaseUserId,
  databaseUserKind,
  usersOfService,
} from "../contents/user/database-user.ts";
import { type ManagedServiceObject, managedServiceKind } from "../service/managed-service.ts";
import type { ServiceAccess } from "../service/service-access.ts";
import { type FilesKeyObject, filesKeyMessage, isFilesKey, newFilesKey } from "./files-key.ts";

export interface FilesKeysDeps {
  readonly begin: () => UnitOfWork;
  readonly services: Collection<ManagedServiceObject>;
  readonly users: Collection<DatabaseUserObject>;
  /** Finds files services. */
  readonly access: ServiceAccess;
  readonly cursors: Cursors;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** Keys of a service: a server reads all of them for each request. */
const maxKeys = 100;

/**
 * The RPCs of keys. Keys are settings of the service: a change of one raises the generation of the settings, and the
 * agent gives its servers the new list.
 */
export function createKeyHandlers(
  deps: FilesKeysDeps,
): Pick<Handlers<typeof FilesService>, "listFilesKeys" | "createFilesKey" | "deleteFilesKey"> {
  const { access, services, users, clock } = deps;
  const kind = "managed-service";
  const visibleIn = [services, users];

  const keysOf = (serviceId: string): FilesKeyObject[] => usersOfService(users, serviceId).filter(isFilesKey);

  /** Raises the generation, which also makes concurrent changes of keys conflict. */
  function delivers(unit: Changes, service: Stored<ManagedServiceObject>): void {
    const { metadata, spec } = service.object;
    if (metadata.deletionRequestedAt !== undefined)
      throw new HoldfastError("WRONG_STATE", "The service is being deleted.");
    unit.update(managedServiceKind, service, {
      ...service.object,
      metadata: nextMetadata(metadata, clock.now()),
      spec: { ...spec, instanceGeneration: spec.instanceGeneration + 1 },
    });
  }

  return {
    listFilesKeys: async ({ serviceId, ...request }, call) => {
      access.require(serviceId, call);
      const page = deps.cursors.open(call, `files-keys ${serviceId}`, null, request);
      const { items, next } = pageByName(keysOf(serviceId), ({ spec }) => spec.username, page);
      return { keys: items.map((key) => filesKeyMessage(key)), ...page.next(next) };
    },

    createFilesKey: ({ serviceId, name, access: requested }, call) =>
      mutate(deps, call, { action: "files-key.create", kind, visibleIn }, async (unit) => {
        const service = access.require(serviceId, call);
        await users.untilRevision(service.modRevision, 1_000);
        const present = keysOf(serviceId);
        if (present.some(({ spec }) => spec.key.name === name))
          throw new HoldfastError("NAME_TAKEN", `The service has a key ${name} already.`);
        if (present.length >= maxKeys)
          throw new HoldfastError("NOT_POSSIBLE", `A service has at most ${maxKeys} keys. Delete an unused one.`);
        const { organizationId } = service.object.metadata;
        const { key, secret } = newFilesKey(
          {
            serviceId,
            organizationId,
            keyId: deps.newId(),
            name,
            access: requested === FilesAccess.READONLY ? "readonly" : "readwrite",
          },
          deps.sealer,
          clock.now(),
        );
        unit.create(databaseUserKind, key);
        delivers(unit, service);
        return { id: serviceId, detail: name, response: filesKeyMessage(key, secret) };
      }),

    deleteFilesKey: ({ serviceId, keyId }, call) =>
      mutate(deps, call, { action: "files-key.delete", kind, visibleIn }, async (unit) => {
        const service = access.require(serviceId, call);
        await users.untilRevision(service.modRevision, 1_000);
        const key = keysOf(serviceId).find(({ spec }) => spec.key.id === keyId);
        const stored = key && users.get(databaseUserId(serviceId, key.spec.username));
        if (key === undefined || stored === undefined)
          throw new HoldfastError("FILES_KEY_NOT_FOUND", "The service has no such key.");
        unit.remove(databaseUserKind, stored);
        delivers(unit, service);
        return { id: serviceId, detail: key.spec.key.name, response: create(EmptySchema) };
      }),
  };
}
