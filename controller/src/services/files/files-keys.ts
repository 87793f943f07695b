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
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { type DatabaseUserObject, usersOfService } from "../contents/user/database-user.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { ServiceAccess } from "../service/service-access.ts";
import { filesKeyMessage, isFilesKey } from "./files-key.ts";
import { createFilesKeyChanges } from "./files-key-changes.ts";

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

/** The RPCs of keys. */
export function createKeyHandlers(
  deps: FilesKeysDeps,
): Pick<Handlers<typeof FilesService>, "listFilesKeys" | "createFilesKey" | "deleteFilesKey"> {
  const { access, services, users } = deps;
  const changes = createFilesKeyChanges(deps);
  const kind = "managed-service";
  const visibleIn = [services, users];

  return {
    listFilesKeys: async ({ serviceId, ...request }, call) => {
      access.require(serviceId, call);
      const page = deps.cursors.open(call, `files-keys ${serviceId}`, null, request);
      const keys = usersOfService(users, serviceId).filter(isFilesKey);
      const { items, next } = pageByName(keys, ({ spec }) => spec.username, page);
      return { keys: items.map((key) => filesKeyMessage(key)), ...page.next(next) };
    },

    createFilesKey: ({ serviceId, name, access: requested }, call) =>
      mutate(deps, call, { action: "files-key.create", kind, visibleIn }, async (unit) => {
        const service = access.require(serviceId, call);
        const keyAccess = requested === FilesAccess.READONLY ? "readonly" : "readwrite";
        const { key, secret } = await changes.add(unit, service, { name, access: keyAccess });
        return { id: serviceId, detail: name, response: filesKeyMessage(key, secret) };
      }),

    deleteFilesKey: ({ serviceId, keyId }, call) =>
      mutate(deps, call, { action: "files-key.delete", kind, visibleIn }, async (unit) => {
        const service = access.require(serviceId, call);
        const key = (await changes.keysOf(service)).find(({ spec }) => spec.key.id === keyId);
        if (key === undefined) throw new HoldfastError("FILES_KEY_NOT_FOUND", "The service has no such key.");
        changes.remove(unit, service, key);
        return { id: serviceId, detail: key.spec.key.name, response: create(EmptySchema) };
      }),
  };
}
