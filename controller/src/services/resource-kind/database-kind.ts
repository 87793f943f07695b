import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { privateNameOf } from "#fleet/zone/dns-record.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf } from "#kernel/store/resource.ts";
import type { ResourceKind } from "#resource-kind/resource-kind.ts";
import { databaseUserId, databaseUserKind, type DatabaseUserObject, newUser } from "../contents/user/database-user.ts";
import { engineProfileOf } from "../engine/engine-profiles.ts";
import { type DatabaseSpec, databaseAliases, databaseSchema, normalizedDatabase } from "./database-spec.ts";
import { createServiceKind, type ServiceKindDeps } from "./service-kind.ts";

export interface DatabaseKindDeps extends ServiceKindDeps {
  readonly users: Collection<DatabaseUserObject>;
  readonly sealer: Sealer;
}

/** Name of the kind in descriptors. */
export const databaseKindName = "database";

/** The resource kind `database`: managed databases as resources of projects, stacks and pipelines. */
export function createDatabaseKind(deps: DatabaseKindDeps): ResourceKind {
  const { users, sealer } = deps;
  const engines = () => deps.engines().filter(({ family }) => family === "databases");
  return createServiceKind(
    { ...deps, engines },
    {
      kind: databaseKindName,
      aliases: databaseAliases,
      scopes: ["services:write"],
      schema: databaseSchema,
      normalize: normalizedDatabase,
      identity: ["database_type", "layout_mode", "server_collation"],
      databaseSpecOf: (spec) => spec as DatabaseSpec,
      changesPlan: true,

      firstUsersOf({ metadata: { id: serviceId, organizationId }, spec: { databaseType: engine } }, now) {
        const user = { serviceId, organizationId, username: defaultUser, role: "admin", engine } as const;
        return [newUser({ ...user, sealer, now }).user];
      },

      // Host, port and user name are permanent, only the password changes.
      outputsVersionOf: (id) => String(users.get(databaseUserId(id, defaultUser))?.modRevision ?? 0),
      watchOutputs: (onChange) =>
        users.subscribe((id, before) => {
          const user = users.get(id)?.object ?? before;
          if (user?.spec.username === defaultUser) onChange(user.spec.serviceId);
        }),

      async outputsOf({ metadata, spec: { databaseType: engine, hostname, port } }, signal) {
        const userId = databaseUserId(metadata.id, defaultUser);
        const user = users.get(userId) ?? (await users.getCurrent(userId, signal));
        if (user === undefined) return undefined;
        return {
          type: "database",
          engine,
          host: privateNameOf(hostname),
          port,
          username: defaultUser,
          password: sealer.open(user.object.spec.sealedPassword, keyOf(databaseUserKind, userId)),
          database: engineProfileOf(engine).connectionDatabase,
        };
      },
    },
  );
}
