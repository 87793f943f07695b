/** The addresses of one name. */
export interface RecordSet {
  /** Absolute name in lower case, without the final dot. */
  readonly name: string;
  readonly addresses: readonly string[];
  readonly ttlS: number;
}

/** A full zone as it is stored on disk. */
export interface ZoneSnapshot {
  readonly origin: string;
  readonly revision: string;
  readonly records: readonly RecordSet[];
  /** host:port of the controllers that serve the feed; absent in files of earlier releases. */
  readonly controllers?: readonly string[];
}

/** A batch of changes from a controller. */
export interface ZoneChange {
  readonly revision: bigint;
  readonly reset: boolean;
  readonly synced: boolean;
  readonly origin: string;
  /** Changed names; one without addresses is deleted. */
  readonly records: readonly RecordSet[];
  /** host:port of the controllers; empty means unchanged. */
  readonly controllers: readonly string[];
}

/**
 * Result of a lookup. `empty`: the name has no records but names below it (an empty non-terminal, RFC 8499). `outside`:
 * the name is not in this zone.
 */
export type ZoneLookup =
  | { readonly kind: "records"; readonly records: RecordSet }
  | { readonly kind: "empty" | "none" | "outside" | "apex" };

/** The zone in memory. */
export interface Zone {
  /** Origin, such as `db.example.com`; empty until a zone was received. */
  readonly origin: string;
  readonly revision: bigint;
  /** host:port of the controllers, from the last batch. */
  readonly controllers: readonly string[];
  /** Applies a batch. A full zone replaces the current one only when its last batch arrived. */
  apply(change: ZoneChange): void;
  /** Looks up a name in lower case, without the final dot. */
  find(name: string): ZoneLookup;
  snapshot(): ZoneSnapshot;
}

interface Contents {
  origin: string;
  readonly records: Map<string, RecordSet>;
  /** Number of names below each non-terminal name. */
  readonly descendants: Map<string, number>;
}

export function createZone(start?: ZoneSnapshot): Zone {
  let current = blank(start?.origin ?? "");
  let revision = BigInt(start?.revision ?? 0);
  let controllers = start?.controllers ?? [];
  let pending: Contents | undefined;
  for (const records of start?.records ?? []) put(current, records);

  return {
    get origin() {
      return current.origin;
    },
    get revision() {
      return revision;
    },
    get controllers() {
      return controllers;
    },
    apply(change) {
      if (change.controllers.length > 0) controllers = [...change.controllers];
      if (change.reset) pending = blank(change.origin.toLowerCase());
      const into = pending ?? current;
      for (const records of change.records) put(into, records);
      if (!change.synced) return;
      if (pending !== undefined) current = pending;
      pending = undefined;
      revision = change.revision;
    },
    find(name) {
      const { origin, records, descendants } = current;
      if (origin === "") return { kind: "outside" };
      if (name === origin) return { kind: "apex" };
      if (!name.endsWith(`.${origin}`)) return { kind: "outside" };
      const found = records.get(name);
      if (found !== undefined) return { kind: "records", records: found };
      return { kind: descendants.has(name) ? "empty" : "none" };
    },
    snapshot: () => ({
      origin: current.origin,
      revision: revision.toString(),
      records: [...current.records.values()],
      controllers,
    }),
  };
}

function blank(origin: string): Contents {
  return { origin, records: new Map(), descendants: new Map() };
}

function put(zone: Contents, set: RecordSet): void {
  const name = set.name.toLowerCase();
  const before = zone.records.has(name);
  const after = set.addresses.length > 0;
  if (after) zone.records.set(name, { ...set, name });
  else zone.records.delete(name);
  if (before !== after) count(zone, name, after ? 1 : -1);
}

function count(zone: Contents, name: string, by: 1 | -1): void {
  for (let dot = name.indexOf("."); dot !== -1; dot = name.indexOf(".", dot + 1)) {
    const parent = name.slice(dot + 1);
    const below = (zone.descendants.get(parent) ?? 0) + by;
    if (below === 0) zone.descendants.delete(parent);
    else zone.descendants.set(parent, below);
    if (parent === zone.origin) return;
  }
}
