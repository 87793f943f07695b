import { create } from "@bufbuild/protobuf";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { EngineDatabase } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import {
  type Database,
  DatabaseDeletionSchema,
  DatabaseSchema,
  DatabaseService,
  DatabaseState,
} from "@holdfast/proto/holdfast/v1/database_pb.ts";
import type { EngineChanges } from "./change/engine-changes.ts";
import type { EngineTasks } from "../service/engine-task.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { hasDatabases, layoutModeOf } from "../service/layout-mode.ts";
import { requireUnattached } from "../service/service-commands.ts";
import { consumersOf, type ServiceConsumers } from "../service/service-consumers.ts";
import type { ServiceAccess } from "../service/service-access.ts";
import { operationMessage } from "#operation/operation-message.ts";
import { type Cursors, pageByName } from "#kernel/page/cursor.ts";

/** States of a database by their names in agents' reports. */
// biome-ignore format: a table, aligned so that it reads as one
const states: Readonly<Record<string, DatabaseState>> = {
  ready:    DatabaseState.READY,
  creating: DatabaseState.CREATING,
  closed:   DatabaseState.CLOSED,
  dropping: DatabaseState.DROPPING,
  invalid:  DatabaseState.INVALID,
};

export interface DatabaseApiDeps {
  readonly access: ServiceAccess;
  readonly tasks: EngineTasks;
  readonly changes: EngineChanges;
  readonly cursors: Cursors;
  readonly consumers: readonly ServiceConsumers[];
}

/** The RPCs of databases inside an engine. Databases are not stored: each call queries the engine. */
export function createDatabaseApi(deps: DatabaseApiDeps): ServedService {
  const { access, tasks, changes, cursors } = deps;

  /** The engine's databases, and the databases being created. */
  async function engineDatabases(service: ManagedServiceObject, call: Call): Promise<EngineDatabase[]> {
    const input = {
      case: "listEngineDatabases",
      value: { $typeName: "holdfast.agent.v1.ListEngineDatabases" },
    } as const;
    const { databases } = await tasks.run(service, input, call.signal);
    const creating = changes.of(service.metadata.id).flatMap(({ change: { spec } }): EngineDatabase[] => {
      if (spec.change.type !== "create_database") return [];
      const { name, owner } = spec.change;
      const exists = databases.some((database) => database.name === name);
      const state = "creating";
      return exists ? [] : [{ $typeName: "holdfast.agent.v1.EngineDatabase", name, owner, sizeBytes: 0n, state }];
    });
    return [...databases, ...creating];
  }

  /** Throws NOT_SUPPORTED for an engine or a layout without databases, before an operation exists. */
  function requireDatabases(serviceId: string, call: Call): void {
    const { spec } = access.require(serviceId, call).object;
    if (hasDatabases(spec)) return;
    const layout = layoutModeOf(spec);
    const suffix = layout === undefined ? "" : ` with the layout ${layout}`;
    throw new HoldfastError("NOT_SUPPORTED", `Services of ${spec.databaseType}${suffix} have no databases.`);
  }

  /** Throws INVALID_REQUEST if databases of the engine have no owners, or if the user does not exist. */
  async function requireOwner(service: ManagedServiceObject, owner: string, call: Call): Promise<void> {
    const engine = service.spec.databaseType;
    if (engineOf(engine)?.hasDatabaseOwners !== true)
      throw invalid({
        field: "owner",
        code: "not_supported",
        detail: `must be omitted: databases of ${engine} have no owner`,
      });
    const input = { case: "listEngineUsers", value: { $typeName: "holdfast.agent.v1.ListEngineUsers" } } as const;
    const { users } = await tasks.run(service, input, call.signal);
    if (!users.some(({ username }) => username === owner))
      throw invalid({
        field: "owner",
        code: "unknown_user",
        detail: `must be a user of the service: there is no user ${owner}`,
      });
  }

  function message({ metadata }: ManagedServiceObject, { state, ...engine }: EngineDatabase): Database {
    const { name, owner, sizeBytes } = engine;
    const inFlight = changes.find(metadata.id, { kind: "database", name });
    const operation = inFlight && operationMessage(inFlight.operation);
    return create(DatabaseSchema, {
      serviceId: metadata.id,
      name,
      owner,
      sizeBytes,
      state: lookUp(states, state) ?? DatabaseState.READY,
      ...(operation && { operation }),
    });
  }

  const handlers: Handlers<typeof DatabaseService> = {
    listDatabases: async (request, call) => {
      const { object } = access.requireRunning(request.serviceId, call);
      requireDatabases(request.serviceId, call);
      const page = cursors.open(call, `databases ${request.serviceId}`, null, request);
      const { items, next } = pageByName(await engineDatabases(object, call), ({ name }) => name, page);
      return { databases: items.map((database) => message(object, database)), ...page.next(next) };
    },

    createDatabase: async ({ serviceId, name, owner = defaultUser }, call) => {
      requireDatabases(serviceId, call);
      if (owner !== defaultUser) await requireOwner(access.requireRunning(serviceId, call).object, owner, call);
      return changes.apply(
        {
          serviceId,
          change: { type: "create_database", name, owner },
          audit: { action: "database.create", objectKind: "managed-service", objectId: serviceId },
          inFlight: (operation) =>
            create(DatabaseSchema, { serviceId, name, owner, state: DatabaseState.CREATING, operation }),
          async applied() {
            const { object } = access.requireRunning(serviceId, call);
            const created = (await engineDatabases(object, call)).find((database) => database.name === name);
            if (created === undefined)
              throw new HoldfastError("DATABASE_NOT_FOUND", `${name} was dropped after its creation.`);
            return message(object, created);
          },
        },
        call,
      );
    },

    deleteDatabase: async ({ serviceId, name }, call) => {
      requireDatabases(serviceId, call);
      const service = access.find(serviceId, call);
      if (service !== undefined) {
        const { object, modRevision } = service;
        requireUnattached(object, await consumersOf(deps.consumers, object.metadata, modRevision), name);
      }
      return changes.apply(
        {
          serviceId,
          change: { type: "delete_database", name },
          audit: { action: "database.delete", objectKind: "managed-service", objectId: serviceId },
          inFlight: (operation) => create(DatabaseDeletionSchema, { serviceId, name, operation }),
          applied: () => create(DatabaseDeletionSchema, { serviceId, name }),
        },
        call,
      );
    },
  };
  return serve(DatabaseService, handlers);
}
