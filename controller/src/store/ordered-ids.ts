/** Ids in order, all together and per organization, so that a page costs the same however many there are. */
export interface OrderedIds {
  add(organizationId: string, id: string): void;
  remove(organizationId: string, id: string): void;
  /** Those of one organization, or all. */
  of(organizationId: string | undefined): SortedIds;
}

export interface SortedIds {
  readonly size: number;
  at(index: number): string;
  /** Index of the first id behind this one; 0 for undefined. */
  behind(id: string | undefined): number;
}

export function createOrderedIds(): OrderedIds {
  const all: string[] = [];
  const byOrganization = new Map<string, string[]>();
  return {
    add(organizationId, id) {
      insert(all, id);
      const ids = byOrganization.get(organizationId) ?? [];
      insert(ids, id);
      byOrganization.set(organizationId, ids);
    },
    remove(organizationId, id) {
      remove(all, id);
      const ids = byOrganization.get(organizationId) ?? [];
      remove(ids, id);
      if (ids.length === 0) byOrganization.delete(organizationId);
    },
    of(organizationId) {
      const ids = organizationId === undefined ? all : (byOrganization.get(organizationId) ?? []);
      return {
        size: ids.length,
        at: (index) => ids[index] ?? "",
        behind: (id) => (id === undefined ? 0 : indexAfter(ids, id)),
      };
    },
  };
}

function insert(ids: string[], id: string): void {
  // Ids are made in order of time: almost always the new one is the last.
  const last = ids.at(-1);
  if (last === undefined || last < id) ids.push(id);
  else ids.splice(indexAfter(ids, id), 0, id);
}

function remove(ids: string[], id: string): void {
  const index = indexAfter(ids, id) - 1;
  if (ids[index] === id) ids.splice(index, 1);
}

function indexAfter(ids: readonly string[], id: string): number {
  let low = 0;
  let high = ids.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ids[middle] ?? "") <= id) low = middle + 1;
    else high = middle;
  }
  return low;
}
