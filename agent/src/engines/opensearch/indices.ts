import { EngineRefused } from "../engine-errors.ts";
import type { EngineIndex, IndicesFacet } from "../indices-facet.ts";
import type { Instance } from "../instance.ts";
import { call, OpensearchRefusal } from "./api.ts";
import { isVisible } from "./layout.ts";

/** A row of `_cat/indices`; figures are null for a closed index. */
interface Row {
  readonly index: string;
  readonly health: string | null;
  readonly pri: string | null;
  readonly rep: string | null;
  readonly "docs.count": string | null;
  readonly "store.size": string | null;
}

const columns = "index,health,pri,rep,docs.count,store.size";

export const indices: IndicesFacet = {
  list: readIndices,

  /** Only an index by its full name: the engine would also accept patterns, lists and aliases. */
  async drop(instance, name, signal) {
    if (!(await readIndices(instance, signal)).some((each) => each.name === name)) return { existed: false };
    try {
      await call(instance, { method: "DELETE", path: `/${encodeURIComponent(name)}` }, signal);
      return { existed: true };
    } catch (error) {
      if (!(error instanceof OpensearchRefusal)) throw error;
      if (error.status === 404) return { existed: false };
      // Such as an index that a data stream writes to.
      if (error.status === 400) throw new EngineRefused(error.message, { cause: error });
      throw error;
    }
  },
};

async function readIndices(instance: Instance, signal: AbortSignal): Promise<EngineIndex[]> {
  const path = `/_cat/indices?format=json&bytes=b&expand_wildcards=all&h=${columns}`;
  const rows = (await call(instance, { method: "GET", path }, signal)) as readonly Row[];
  return rows
    .filter(({ index }) => isVisible(index))
    .map((row) => ({
      name: row.index,
      health: row["docs.count"] === null ? "" : (row.health ?? ""),
      documents: Number(row["docs.count"] ?? 0),
      sizeBytes: Number(row["store.size"] ?? 0),
      shards: Number(row.pri ?? 0),
      replicas: Number(row.rep ?? 0),
    }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
