/** One name of the zone with its addresses. */
export interface RecordSet {
  /** Absolute, lower case, without the last dot. */
  readonly name: string;
  readonly addresses: readonly string[];
  readonly ttlS: number;
}

/** A whole zone, as it is on disk. */
export interface ZoneSnapshot {
  readonly origin: string;
  readonly revision: string;
  readonly records: readonly RecordSet[];
  /** host:port of the controllers that it can be followed from; older files have none. */
  readonly controllers?: readonly string[];
}

/** A change as it comes from a controller. */
export interface ZoneChange {
  readonly revision: bigint;
  readonly reset: boolean;
  readonly synced: boolean;
  readonly origin: string;
  /** No addresses: the name is gone. */
  readonly records: readonly RecordSet[];
  /** Empty: the same as before. */
  readonly controllers: readonly string[];
}

/** `empty`: names lie below it, it has no records itself. `outside`: not a name of this zone. */
export type Found =
  | { readonly kind: "records"; readonly records: RecordSet }
  | { readonly kind: "empty" | "none" | "outside" | "apex" };

/** The zone that is answered from, in memory. */
export interface Zone {
  /** Empty until there is a zone. */
  readonly origin: string;
  readonly revision: bigint;
  /** host:port of the controllers, as the last of them told. */
  readonly controllers: readonly string[];
  /** Applies a batch. A new whole zone replaces the old one only when all of it is there. */
  apply(change: ZoneChange): void;
  /** `name` in lower case, without the last dot. */
  find(name: string): Found;
  snapshot(): ZoneSnapshot;
}

interface Contents {
  origin: string;
  readonly records: Map<string, RecordSet>;
  /** For each name above others, how many lie below. */
  readonly above: Map<string, number>;
}

export function createZone(start?: ZoneSnapshot): Zone {
  let current = blank(start?.origin ?? "");
  let revision = BigInt(start?.revision ?? 0);
  let controllers = start?.controllers ?? [];
  let coming: Contents | undefined;
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
      if (change.reset) coming = blank(change.origin.toLowerCase());
      const into = coming ?? current;
      for (const records of change.records) put(into, records);
      if (!change.synced) return;
      if (coming !== undefined) current = coming;
      coming = undefined;
      revision = change.revision;
    },
    find(name) {
      const { origin, records, above } = current;
      if (origin === "") return { kind: "outside" };
      if (name === origin) return { kind: "apex" };
      if (!name.endsWith(`.${origin}`)) return { kind: "outside" };
      const found = records.get(name);
      if (found !== undefined) return { kind: "records", records: found };
      return { kind: above.has(name) ? "empty" : "none" };
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
  return { origin, records: new Map(), above: new Map() };
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
    const below = (zone.above.get(parent) ?? 0) + by;
    if (below === 0) zone.above.delete(parent);
    else zone.above.set(parent, below);
    if (parent === zone.origin) return;
  }
}
