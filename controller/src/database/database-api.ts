import { create } from "@bufbuild/protobuf";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { EngineDatabase } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { type Database, DatabaseSchema, DatabaseService } from "@holdfast/proto/holdfast/v1/database_pb.ts";
import { auditOf } from "../access/caller.ts";
import { type Cursors, defaultPageSize } from "../access/cursor.ts";
import { pageByName } from "../access/page-by-name.ts";
import type { EngineTasks } from "../managed-service/engine-task.ts";
import { defaultUser, type ManagedServiceObject } from "../managed-service/managed-service.ts";
import type { ServiceAccess } from "../managed-service/service-access.ts";
import { createKeyedMutex } from "../runtime/keyed-mutex.ts";
import type { UnitOfWork } from "../store/unit-of-work.ts";

export interface DatabaseApiDeps {
  readonly begin: () => UnitOfWork;
  readonly access: ServiceAccess;
  readonly tasks: EngineTasks;
  readonly cursors: Cursors;
}

/** The RPCs of databases inside an engine. The engine is the only truth: nothing of them is kept here. */
export function createDatabaseApi(deps: DatabaseApiDeps): ServedService {
  const { access, tasks, cursors } = deps;
  const changing = createKeyedMutex();

  async function engineDatabases(service: ManagedServiceObject, call: Call): Promise<EngineDatabase[]> {
    const input = {
      case: "listEngineDatabases",
      value: { $typeName: "holdfast.agent.v1.ListEngineDatabases" },
    } as const;
    return (await tasks.run(service, input, call.signal)).databases;
  }

  function message(service: ManagedServiceObject, { name, owner, sizeBytes }: EngineDatabase): Database {
    return create(DatabaseSchema, { serviceId: service.metadata.id, name, owner, sizeBytes });
  }

  async function audit(call: Call, action: string, service: ManagedServiceObject, answer?: Database): Promise<void> {
    const unit = deps.begin();
    unit.audit(auditOf(call, action, "managed-service", service.metadata.id));
    if (answer !== undefined) unit.answer(call, answer);
    await unit.commit(call.signal);
  }

  const handlers: Handlers<typeof DatabaseService> = {
    listDatabases: async (request, call) => {
      const { object } = access.requireRunning(request.serviceId, call);
      const list = `databases ${request.serviceId}`;
      const after = cursors.read(call, list, null, request.cursor);
      const { items, next } = pageByName(
        await engineDatabases(object, call),
        ({ name }) => name,
        after,
        request.limit ?? defaultPageSize,
      );
      const nextCursor = next === undefined ? {} : { nextCursor: cursors.make(call, list, null, next) };
      return { databases: items.map((database) => message(object, database)), ...nextCursor };
    },

    createDatabase: ({ serviceId, name }, call) =>
      changing(`${serviceId} ${name}`, async () => {
        const { object } = access.requireRunning(serviceId, call);
        const value = { $typeName: "holdfast.agent.v1.CreateEngineDatabase", name, owner: defaultUser } as const;
        const { created } = await tasks.run(object, { case: "createEngineDatabase", value }, call.signal);
        if (!created) throw new HoldfastError("NAME_TAKEN", `The engine has a database ${name} already.`);
        const made = (await engineDatabases(object, call)).find((database) => database.name === name);
        if (made === undefined) throw new HoldfastError("DATABASE_NOT_FOUND", `${name} was dropped meanwhile.`);
        const answer = message(object, made);
        await audit(call, "database.create", object, answer);
        return answer;
      }),

    deleteDatabase: ({ serviceId, name }, call) =>
      changing(`${serviceId} ${name}`, async () => {
        const { object } = access.requireRunning(serviceId, call);
        const value = { $typeName: "holdfast.agent.v1.DropEngineDatabase", name } as const;
        const { existed } = await tasks.run(object, { case: "dropEngineDatabase", value }, call.signal);
        if (!existed) throw new HoldfastError("DATABASE_NOT_FOUND", `The engine has no database ${name}.`);
        await audit(call, "database.delete", object);
        return {};
      }),
  };
  return serve(DatabaseService, handlers);
}
