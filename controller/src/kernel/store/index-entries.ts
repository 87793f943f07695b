import type { Index } from "./object-index.ts";

/** The ids of the objects of one kind under the keys of one index. */
export interface IndexEntries<R> {
  /** An object came, changed or went. */
  note(id: string, before: R | undefined, after: R | undefined): void;
  /** In order, which is age where ids are made by the platform. */
  under(key: string): readonly string[];
  keys(): IterableIterator<string>;
}

export function createIndexEntries<R>(index: Index<R>): IndexEntries<R> {
  const idsOf = new Map<string, Set<string>>();
  return {
    note(id, before, after) {
      const left = before && index(before);
      const key = after && index(after);
      if (left === key) return;
      if (left !== undefined) {
        const ids = idsOf.get(left);
        ids?.delete(id);
        if (ids?.size === 0) idsOf.delete(left);
      }
      if (key === undefined) return;
      const ids = idsOf.get(key) ?? new Set();
      idsOf.set(key, ids.add(id));
    },
    under: (key) => [...(idsOf.get(key) ?? [])].toSorted(),
    keys: () => idsOf.keys(),
  };
}
