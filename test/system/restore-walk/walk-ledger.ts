/**
 * Time at which an action began and was acknowledged, in milliseconds since 1970. Without a response its outcome is
 * unknown.
 */
export interface Action {
  readonly startedAt: number;
  acknowledgedAt?: number;
}

export type ObjectKind =
  | "database"
  | "role"
  | "extension"
  | "table"
  | "sequence"
  | "large object"
  | "setting"
  | "prepared transaction";

/** An object of the catalog, or a row of the writer's table. */
export interface LedgerObject {
  readonly kind: ObjectKind;
  /** Database of the object; absent for an object outside of databases. */
  readonly database?: string;
  readonly name: string;
  readonly created: Action;
  dropped?: Action;
  /** Rows of a table, bytes of a large object. */
  readonly size?: number;
  /** An unlogged table is restored without its rows. */
  readonly unlogged?: boolean;
  /** Values of a sequence. */
  readonly values: { readonly value: number; readonly action: Action }[];
}

export interface LedgerRow {
  readonly id: number;
  readonly created: Action;
  dropped?: Action;
}

/** Everything that was written to a service, recorded outside of it. */
export interface WalkLedger {
  readonly rows: LedgerRow[];
  readonly objects: LedgerObject[];
}

/** Range of times, in ms since 1970, that contains the time of restored data; both are equal if that is exact. */
export interface Moment {
  readonly from: number;
  readonly to: number;
}

/** Contents of a restored service. */
export interface ServiceContents {
  readonly rows: ReadonlySet<number>;
  /** Rows whose text does not match their id. */
  readonly damaged: readonly number[];
  readonly roles: ReadonlySet<string>;
  readonly prepared: ReadonlySet<string>;
  readonly databases: ReadonlyMap<string, DatabaseContents | "invalid">;
}

export interface DatabaseContents {
  readonly extensions: ReadonlySet<string>;
  /** Rows of each table. */
  readonly tables: ReadonlyMap<string, number>;
  /** Last value of each sequence. */
  readonly sequences: ReadonlyMap<string, number>;
  /** Bytes of each large object. */
  readonly largeObjects: ReadonlyMap<string, number>;
  /** Names of the parameters that are set for the database. */
  readonly settings: ReadonlySet<string>;
}

type Presence = "present" | "absent" | "either";

/** Presence of an object in data of the moment. Within a millisecond the order is unknown. */
export function presenceIn(
  { created, dropped }: { created: Action; dropped?: Action | undefined },
  moment: Moment,
): Presence {
  if (created.startedAt > moment.to) return "absent";
  if (dropped?.acknowledgedAt !== undefined && dropped.acknowledgedAt < moment.from) return "absent";
  const isCreated = created.acknowledgedAt !== undefined && created.acknowledgedAt < moment.from;
  const remains = dropped === undefined || dropped.startedAt > moment.to;
  return isCreated && remains ? "present" : "either";
}

const mostListed = 10;

/** Differences between restored data and the ledger at the moment, a sentence each; none when they agree. */
export function faultsOf(ledger: WalkLedger, moment: Moment, contents: ServiceContents): readonly string[] {
  return [...rowFaults(ledger.rows, moment, contents), ...objectFaults(ledger.objects, moment, contents)];
}

function rowFaults(rows: readonly LedgerRow[], moment: Moment, contents: ServiceContents): string[] {
  const found = (presence: Presence, isThere: boolean) =>
    rows.filter((row) => presenceIn(row, moment) === presence && contents.rows.has(row.id) === isThere);
  const sentence = (list: readonly LedgerRow[], text: string) =>
    list.length === 0
      ? []
      : [
          `${list.length} rows ${text}: ${list.slice(0, mostListed).map(({ id, created }) => `${id} ${JSON.stringify(created)}`)}`,
        ];
  const ids = new Set(rows.map(({ id }) => id));
  const unwritten = [...contents.rows].filter((id) => !ids.has(id));
  return [
    ...sentence(found("present", false), "acknowledged before the moment are missing"),
    ...sentence(found("absent", true), "begun after the moment are there"),
    ...(unwritten.length === 0 ? [] : [`rows without a write are there: ${unwritten.slice(0, mostListed)}`]),
    ...(contents.damaged.length === 0 ? [] : [`rows have another text: ${contents.damaged.slice(0, mostListed)}`]),
  ];
}

function objectFaults(objects: readonly LedgerObject[], moment: Moment, contents: ServiceContents): string[] {
  return objects.flatMap((object) => {
    const { kind, name, database } = object;
    const inDatabase = database === undefined ? undefined : contents.databases.get(database);
    // The database itself is an object of the ledger.
    if (database !== undefined && (inDatabase === undefined || inDatabase === "invalid")) return [];
    const presence = presenceIn(object, moment);
    const title = `${kind} ${name}${database === undefined ? "" : ` of ${database}`}`;
    const times = JSON.stringify({ created: object.created, dropped: object.dropped });
    const isThere = isFound(object, contents);
    if (presence === "present" && !isThere) return [`${title} is missing: ${times}`];
    if (presence === "absent" && isThere) return [`${title} is there: ${times}`];
    if (!isThere || inDatabase === undefined || inDatabase === "invalid") return [];
    return sizeFaults(object, inDatabase, moment).map((fault) => `${title} ${fault}: ${times}`);
  });
}

/** A database that cannot be connected to counts as existing only while its drop may have begun. */
function isFound({ kind, name, database }: LedgerObject, contents: ServiceContents): boolean {
  const inDatabase = contents.databases.get(database ?? "");
  const of = inDatabase === "invalid" ? undefined : inDatabase;
  switch (kind) {
    case "database": {
      const found = contents.databases.get(name);
      return found !== undefined && found !== "invalid";
    }
    case "role":
      return contents.roles.has(name);
    case "prepared transaction":
      return contents.prepared.has(name);
    case "extension":
      return of?.extensions.has(name) ?? false;
    case "table":
      return of?.tables.has(name) ?? false;
    case "sequence":
      return of?.sequences.has(name) ?? false;
    case "large object":
      return of?.largeObjects.has(name) ?? false;
    case "setting":
      return of?.settings.has(name) ?? false;
  }
}

function sizeFaults({ kind, name, size, unlogged, values }: LedgerObject, of: DatabaseContents, moment: Moment) {
  switch (kind) {
    case "table": {
      const rows = of.tables.get(name);
      const isRight = rows === size || (unlogged === true && rows === 0);
      return isRight ? [] : [`has ${rows} rows instead of ${size}`];
    }
    case "large object": {
      const bytes = of.largeObjects.get(name);
      return bytes === size ? [] : [`has ${bytes} bytes instead of ${size}`];
    }
    case "sequence": {
      const last = of.sequences.get(name) ?? 0;
      const least = Math.max(
        0,
        ...values.flatMap(({ value, action }) => (presenceIn({ created: action }, moment) === "present" ? value : [])),
      );
      return last >= least ? [] : [`is at ${last}, before ${least}`];
    }
    default:
      return [];
  }
}
