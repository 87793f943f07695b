import { create } from "@bufbuild/protobuf";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import {
  DropEngineIndexSchema,
  type EngineIndex,
  ListEngineIndicesSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { IndexService } from "@holdfast/proto/holdfast/v1/index_pb.ts";
import { auditOf } from "#access/caller.ts";
import { type Cursors, pageByName } from "#kernel/page/cursor.ts";
import type { AuditedActs } from "#kernel/outbox/audited-acts.ts";
import type { EngineTasks } from "../service/engine-task.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { ServiceAccess } from "../service/service-access.ts";

export interface IndexApiDeps {
  readonly access: ServiceAccess;
  readonly tasks: EngineTasks;
  readonly cursors: Cursors;
  readonly auditedActs: Pick<AuditedActs, "act">;
}

/** The RPCs of indices. Nothing is stored: each call queries the engine, and a deletion is audited with its outcome. */
export function createIndexApi({ access, tasks, cursors, auditedActs }: IndexApiDeps): ServedService {
  /** Throws NOT_SUPPORTED for an engine without indices, and WRONG_STATE while the service does not run. */
  function requireIndices(serviceId: string, call: Call): ManagedServiceObject {
    const { databaseType } = access.require(serviceId, call).object.spec;
    if (engineOf(databaseType)?.hasIndices !== true)
      throw new HoldfastError("NOT_SUPPORTED", `Services of ${databaseType} have no indices of documents.`);
    return access.requireRunning(serviceId, call).object;
  }

  const handlers: Handlers<typeof IndexService> = {
    async listIndices(request, call) {
      const service = requireIndices(request.serviceId, call);
      const page = cursors.open(call, `indices ${request.serviceId}`, null, request);
      const input = { case: "listEngineIndices" as const, value: create(ListEngineIndicesSchema) };
      const { indices } = await tasks.run(service, input, call.signal);
      const { items, next } = pageByName(indices, ({ name }) => name, page);
      return { indices: items.map((each) => messageOf(service, each)), ...page.next(next) };
    },

    async deleteIndex({ serviceId, name }, call) {
      const service = requireIndices(serviceId, call);
      const value = create(DropEngineIndexSchema, { name });
      await auditedActs.act(auditOf(call, "index.delete", "managed-service", serviceId, name), async () => {
        const { existed } = await tasks.run(service, { case: "dropEngineIndex", value }, call.signal);
        if (!existed) throw new HoldfastError("INDEX_NOT_FOUND", `The service has no index ${name}.`);
      });
      return {};
    },
  };
  return serve(IndexService, handlers);
}

function messageOf({ metadata }: ManagedServiceObject, index: EngineIndex) {
  const { name, health, documents, sizeBytes, shards, replicas } = index;
  return {
    serviceId: metadata.id,
    name,
    ...(health !== "" && { health }),
    documents,
    sizeBytes,
    shards,
    replicas,
  };
}
