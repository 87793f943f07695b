import { create } from "@bufbuild/protobuf";
import type { DatabasesFacet } from "@holdfast/agent/engines/contents-facets.ts";
import type { Instance } from "@holdfast/agent/engines/engine-driver.ts";
import { EngineRefused } from "@holdfast/agent/engines/engine-errors.ts";
import { EngineDatabaseSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { callEtcd, decoded, encoded, prefixRange, type RangeReply } from "./api.ts";
import { ownTarget } from "./layout.ts";

const prefix = "databases/";

interface Database {
  readonly owner: string;
  readonly mark: string;
}

async function all(instance: Instance, signal: AbortSignal): Promise<Map<string, Database>> {
  const { kvs = [] } = await callEtcd<RangeReply>(ownTarget(instance), "kv/range", prefixRange(prefix), signal);
  return new Map(
    kvs.map(({ key, value = "" }) => [decoded(key).slice(prefix.length), JSON.parse(decoded(value)) as Database]),
  );
}

/** A database is a key, which any member reads and writes through the leader. */
export const databases: DatabasesFacet = {
  async list(instance, signal) {
    const found = [...(await all(instance, signal))];
    return found.map(([name, { owner }]) => create(EngineDatabaseSchema, { name, owner }));
  },
  async create(instance, { name, owner, mark }, signal) {
    const key = encoded(prefix + name);
    const value = encoded(JSON.stringify({ owner, mark }));
    const compare = [{ key, target: "CREATE", result: "EQUAL", create_revision: "0" }];
    const success = [{ request_put: { key, value } }];
    const { succeeded = false } = await callEtcd<{ succeeded?: boolean }>(
      ownTarget(instance),
      "kv/txn",
      { compare, success },
      signal,
    );
    if (succeeded) return { created: true };
    const before = (await all(instance, signal)).get(name);
    if (mark !== "" && before?.mark === mark) return { created: false };
    throw new EngineRefused(`the database ${name} exists`);
  },
  async drop(instance, name, signal) {
    const { deleted = "0" } = await callEtcd<{ deleted?: string }>(
      ownTarget(instance),
      "kv/deleterange",
      { key: encoded(prefix + name) },
      signal,
    );
    return { existed: deleted !== "0" };
  },
  async settled(instance, name, mark, signal) {
    const found = (await all(instance, signal)).get(name);
    return { exists: found !== undefined, marked: mark !== "" && found?.mark === mark };
  },
};
