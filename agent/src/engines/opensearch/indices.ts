import { EngineRefused } from "../engine-errors.ts";
import type { EngineIndex, IndicesFacet } from "../indices-facet.ts";
import type { Instance } from "../instance.ts";
import { call, OpensearchRefusal } from "./api.ts";
import { readCopies } from "./figures.ts";
import { readIndexStates } from "./index-states.ts";
import { isVisible } from "./layout.ts";

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
      // Such as an index that a data stream writes to, or that a block protects.
      if (error.status < 500) throw new EngineRefused(error.message, { cause: error });
      throw error;
    }
  },
};

/** All indices of users, also closed and hidden ones; no block of an index refuses these calls. */
async function readIndices(instance: Instance, signal: AbortSignal): Promise<EngineIndex[]> {
  const [states, copies] = await Promise.all([readIndexStates(instance, signal), readCopies(instance, signal)]);
  const figures = new Map<string, { documents: number; sizeBytes: number }>();
  for (const { index, isPrimary, documents, bytes } of copies) {
    const sum = figures.get(index) ?? { documents: 0, sizeBytes: 0 };
    figures.set(index, {
      documents: sum.documents + (isPrimary ? documents : 0),
      sizeBytes: sum.sizeBytes + bytes,
    });
  }
  return states
    .filter(({ name }) => isVisible(name))
    .map(({ name, isOpen, health, shards, replicas }) => ({
      name,
      health: isOpen ? health : "",
      documents: 0,
      sizeBytes: 0,
      ...(isOpen && figures.get(name)),
      shards,
      replicas,
    }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
