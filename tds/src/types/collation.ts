/** Differences of texts that a collation distinguishes: case, accents, or (`bin`) every code point. */
export type Sensitivity = "ci_as" | "cs_as" | "ci_ai" | "cs_ai" | "bin";

/** A collation of T-SQL, and the one of PostgreSQL in the schema `holdfast_tsql` that orders and compares its texts. */
export interface Collation {
  readonly name: string;
  readonly description: string;
  readonly backend: string;
  readonly sensitivity: Sensitivity;
  /** True if a client that gets a varchar of it needs UTF-8 (MS-TDS 2.2.5.1.2). */
  readonly isUtf8: boolean;
  /** The five bytes of a TYPE_INFO: locale, flags, version, sort id. */
  readonly wire: Uint8Array;
}

const meanings: Readonly<Record<Sensitivity, string>> = {
  ci_as: "case-insensitive, accent-sensitive",
  cs_as: "case-sensitive, accent-sensitive",
  ci_ai: "case-insensitive, accent-insensitive",
  cs_ai: "case-sensitive, accent-insensitive",
  bin: "binary sort",
};

/** Locales of ICU. Those that are not deterministic find texts equal that differ in case or accents. */
export const locales: Readonly<Record<Exclude<Sensitivity, "bin">, { locale: string; isDeterministic: boolean }>> = {
  ci_as: { locale: "und-u-ks-level2", isDeterministic: false },
  cs_as: { locale: "und", isDeterministic: true },
  ci_ai: { locale: "und-u-ks-level1", isDeterministic: false },
  cs_ai: { locale: "und-u-ks-level1-kc-true", isDeterministic: false },
};

/** Flags of the third byte: case, accents, kana and width are ignored. */
const ignored: Readonly<Record<Sensitivity, number>> = { ci_as: 0xd0, cs_as: 0xc0, ci_ai: 0xf0, cs_ai: 0xe0, bin: 0 };
const flags = { binary: 0x01, codePoints: 0x02, utf8: 0x04 } as const;
/** The locale of the United States, which all collations of Latin1_General have. */
const locale = [0x09, 0x04] as const;

/** Sort ids of the collations of SQL Server's own tables. */
const sortIds = new Map([
  ["CI_AS", 52],
  ["CS_AS", 51],
  ["CI_AI", 54],
]);

function collation(family: string, suffix: string, version: number): Collation {
  const name = `${family}_${suffix}`;
  const isUtf8 = suffix.endsWith("UTF8");
  const sensitivity = suffix.startsWith("BIN") ? "bin" : (suffix.slice(0, 5).toLowerCase() as Sensitivity);
  const binary = suffix === "BIN" ? flags.binary : suffix.startsWith("BIN2") ? flags.codePoints : 0;
  const sortId = family.startsWith("SQL_") ? (sortIds.get(suffix) ?? 0) : 0;
  const last = (version << 4) | binary | (isUtf8 ? flags.utf8 : 0);
  return {
    name,
    description: `Latin1-General, ${meanings[sensitivity]}${isUtf8 ? ", UTF8" : ""}`,
    // The collation of all services before there was a choice.
    backend: name === "SQL_Latin1_General_CP1_CI_AS" ? "ci_as" : name.toLowerCase(),
    sensitivity,
    isUtf8,
    wire: Uint8Array.of(...locale, ignored[sensitivity], last, sortId),
  };
}

const sensitive = ["CI_AS", "CS_AS", "CI_AI", "CS_AI"];

/** The collations that statements can name. */
export const collations: readonly Collation[] = [
  ...["CI_AS", "CS_AS", "CI_AI"].map((suffix) => collation("SQL_Latin1_General_CP1", suffix, 0)),
  ...[...sensitive, "BIN", "BIN2"].map((suffix) => collation("Latin1_General", suffix, 0)),
  ...[...sensitive, "BIN2"].map((suffix) => collation("Latin1_General_100", suffix, 2)),
  ...sensitive.map((suffix) => collation("Latin1_General_100", `${suffix}_SC`, 2)),
  ...[...sensitive.map((suffix) => `${suffix}_SC`), "BIN2"].map((suffix) =>
    collation("Latin1_General_100", `${suffix}_UTF8`, 2),
  ),
];

/** The collation of a service that names none. */
export const defaultCollation: Collation = collation("SQL_Latin1_General_CP1", "CI_AS", 0);

/** The collation of texts that PostgreSQL compares by code points, such as those of columns of its clients. */
export const codePointCollation: Collation = collation("Latin1_General", "BIN2", 0);

const byName = new Map(collations.map((each) => [each.name.toLowerCase(), each]));
const byBackend = new Map(collations.map((each) => [each.backend, each]));

/** Names of collations have no case. */
export const findCollation = (name: string): Collation | undefined => byName.get(name.toLowerCase());

/** The collation of a column by the name of its collation in PostgreSQL. */
export const collationOfBackend = (name: string): Collation => byBackend.get(name) ?? codePointCollation;

/** The COLLATE clause of PostgreSQL. */
export const collateText = ({ backend }: Collation): string => `COLLATE holdfast_tsql."${backend}"`;
