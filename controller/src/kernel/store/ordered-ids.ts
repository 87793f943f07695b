/** Sorted ids, overall and per organization, so that the cost of a page does not depend on the number of ids. */
export interface OrderedIds {
  add(organizationId: string, id: string): void;
  remove(organizationId: string, id: string): void;
  /** The ids of one organization; all ids when undefined. */
  of(organizationId: string | undefined): SortedIds;
}

export interface SortedIds {
  readonly size: number;
  at(index: number): string;
  /** Index of the first id after this one; 0 for undefined. */
  indexAfter(id: string | undefined): number;
}

export function createOrderedIds(): OrderedIds {
  const all = createList();
  const byOrganization = new Map<string, List>();
  return {
    add(organizationId, id) {
      all.add(id);
      const organizationIds = byOrganization.get(organizationId) ?? createList();
      organizationIds.add(id);
      byOrganization.set(organizationId, organizationIds);
    },
    remove(organizationId, id) {
      all.remove(id);
      const organizationIds = byOrganization.get(organizationId);
      organizationIds?.remove(id);
      if (organizationIds?.size === 0) byOrganization.delete(organizationId);
    },
    of(organizationId) {
      const list = organizationId === undefined ? all : byOrganization.get(organizationId);
      const ids = list?.sorted() ?? [];
      return {
        size: ids.length,
        at: (index) => ids[index] ?? "",
        indexAfter: (id) => (id === undefined ? 0 : indexAfter(ids, id)),
      };
    },
  };
}

interface List {
  readonly size: number;
  add(id: string): void;
  remove(id: string): void;
  sorted(): readonly string[];
}

/**
 * A list of ids that is sorted when it is read. A hundred thousand tasks have ids in random order and are rarely
 * listed; an insertion into a sorted array would move half of it each time.
 */
function createList(): List {
  let ids: string[] = [];
  const unsorted = new Set<string>();
  const removed = new Set<string>();
  return {
    get size() {
      return ids.length - removed.size + unsorted.size;
    },
    add(id) {
      if (removed.delete(id)) return;
      const last = ids.at(-1);
      if (last === undefined || last < id) ids.push(id);
      else unsorted.add(id);
    },
    remove(id) {
      if (!unsorted.delete(id)) removed.add(id);
    },
    sorted() {
      if (removed.size > 0) ids = ids.filter((id) => !removed.has(id));
      if (unsorted.size > 0) ids = [...ids, ...unsorted].sort();
      removed.clear();
      unsorted.clear();
      return ids;
    },
  };
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
