/** Ids in order, all together and per organization, so that a page costs the same however many there are. */
export interface OrderedIds {
  add(organizationId: string, id: string): void;
  remove(organizationId: string, id: string): void;
  /** The ids of one organization, or all. */
  of(organizationId: string | undefined): SortedIds;
}

export interface SortedIds {
  readonly size: number;
  at(index: number): string;
  /** Index of the first id behind this one; 0 for undefined. */
  behind(id: string | undefined): number;
}

export function createOrderedIds(): OrderedIds {
  const all = createList();
  const byOrganization = new Map<string, List>();
  return {
    add(organizationId, id) {
      all.add(id);
      const own = byOrganization.get(organizationId) ?? createList();
      own.add(id);
      byOrganization.set(organizationId, own);
    },
    remove(organizationId, id) {
      all.remove(id);
      const own = byOrganization.get(organizationId);
      own?.remove(id);
      if (own?.size === 0) byOrganization.delete(organizationId);
    },
    of(organizationId) {
      const list = organizationId === undefined ? all : byOrganization.get(organizationId);
      const ids = list?.sorted() ?? [];
      return {
        size: ids.length,
        at: (index) => ids[index] ?? "",
        behind: (id) => (id === undefined ? 0 : indexAfter(ids, id)),
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
 * Sorted when it is read: there may be a hundred thousand tasks, whose ids come in no order and are rarely listed, and
 * a sorted insertion of each would move half of the others.
 */
function createList(): List {
  let ids: string[] = [];
  const late = new Set<string>();
  const gone = new Set<string>();
  return {
    get size() {
      return ids.length - gone.size + late.size;
    },
    add(id) {
      if (gone.delete(id)) return;
      const last = ids.at(-1);
      if (last === undefined || last < id) ids.push(id);
      else late.add(id);
    },
    remove(id) {
      if (!late.delete(id)) gone.add(id);
    },
    sorted() {
      if (gone.size > 0) ids = ids.filter((id) => !gone.has(id));
      if (late.size > 0) ids = [...ids, ...late].sort();
      gone.clear();
      late.clear();
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
