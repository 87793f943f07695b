import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { ResourceKind } from "#resource-kind/resource-kind.ts";
import { privateFilesOutputs } from "../files/files-connection.ts";
import { type FilesKeyChanges, keyOfConsumer } from "../files/files-key-changes.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { DatabaseSpec } from "./database-spec.ts";
import { filesSchema, normalizedFiles } from "./files-spec.ts";
import { createServiceKind, type ServiceKindDeps } from "./service-kind.ts";

export interface FilesKindDeps extends ServiceKindDeps {
  readonly keys: FilesKeyChanges;
  /** Resolves when the hosts are known, on which the port of a new service depends. */
  readonly hostsReported: (signal: AbortSignal) => Promise<void>;
}

/** Name of the kind in descriptors. */
export const filesKindName = "files";

/**
 * The resource kind `files`: files services as resources of projects, stacks and pipelines. A running one is not
 * changed by a descriptor. Each consumer has a separate key, so it gets its outputs by `credentials` alone.
 */
export function createFilesKind(deps: FilesKindDeps): ResourceKind {
  const { services, keys } = deps;
  const engines = () => deps.engines().filter(({ family }) => family === "files");
  const kind = createServiceKind(
    { ...deps, engines },
    {
      kind: filesKindName,
      aliases: {},
      scopes: ["files:write"],
      schema: filesSchema,
      normalize: normalizedFiles,
      databaseSpecOf: (spec) => ({ ...(spec as DatabaseSpec), database_type: "files" }),
      changesPlan: false,
      firstUsersOf: () => [],
      outputsVersionOf: () => "0",
      outputsOf: async () => undefined,
      credentials: {
        async attach(unit, id, consumer, signal) {
          const service = await find(services, id, signal);
          if (service === undefined) return undefined;
          const key = keyOfConsumer(await keys.keysOf(service), consumer.id);
          if (key !== undefined) return privateFilesOutputs(service.object.spec, { key, secret: keys.secretOf(key) });
          const requested = {
            name: `${consumer.name}-${consumer.id.slice(-8)}`,
            access: "readwrite",
            consumerId: consumer.id,
          } as const;
          return privateFilesOutputs(service.object.spec, await keys.add(unit, service, requested));
        },
        async detach(unit, id, consumerId, signal) {
          const service = await find(services, id, signal);
          if (service === undefined || service.object.metadata.deletionRequestedAt !== undefined) return false;
          const key = keyOfConsumer(await keys.keysOf(service), consumerId);
          if (key === undefined) return false;
          keys.remove(unit, service, key);
          return true;
        },
      },
    },
  );
  return {
    ...kind,
    async create(unit, resource, signal) {
      await deps.hostsReported(signal);
      return kind.create(unit, resource, signal);
    },
  };
}

async function find(
  services: Collection<ManagedServiceObject>,
  id: string,
  signal: AbortSignal,
): Promise<Stored<ManagedServiceObject> | undefined> {
  return services.get(id) ?? services.getCurrent(id, signal);
}
