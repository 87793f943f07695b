/**
 * Extensions that the console allows. Their functions are written in C, or their bodies name pg_catalog explicitly, so
 * that they call no code of users. Excluded: functions that run a string as SQL (tablefunc) and bodies that resolve
 * names by the search path (earthdistance).
 */
const extensions = [
  "btree_gin",
  "btree_gist",
  "citext",
  "cube",
  "dict_int",
  "dict_xsyn",
  "fuzzystrmatch",
  "hstore",
  "intarray",
  "isn",
  "ltree",
  "pg_trgm",
  "pgcrypto",
  "seg",
  "unaccent",
  "uuid-ossp",
  "vector",
] as const;

/**
 * OID of the superuser who owns all that an extension's script creates. The extension's own owner can add functions of
 * theirs to it.
 */
const superuser = 10;

const allowedNames = `ARRAY[${extensions.map((name) => `'${name}'`).join(", ")}]`;

const members = (catalog: string) => `
  SELECT m.objid FROM pg_extension e JOIN pg_depend m ON m.refclassid = 'pg_extension'::regclass AND m.refobjid = e.oid
  WHERE e.extname = ANY (${allowedNames}) AND m.classid = '${catalog}'::regclass AND m.deptype = 'e'`;

/** SQL condition: true for a row of pg_proc, pg_operator or pg_type of an extension above. */
export const isAllowed = {
  proc: (row: string): string => `(${row}.proowner = ${superuser} AND ${row}.oid IN (${members("pg_proc")}))`,
  operator: (row: string): string => `(${row}.oprowner = ${superuser} AND ${row}.oid IN (${members("pg_operator")}))`,
  type: (row: string): string => `(${row}.typowner = ${superuser} AND ${row}.oid IN (${members("pg_type")}))`,
};

/**
 * Schemas of these extensions that may be in the search path after pg_catalog: schemas in which all functions of the
 * names $1, all types of the names $2 and all operators belong to the extensions.
 */
export const extensionSchemasSql = `
  SELECT quote_ident(n.nspname) FROM pg_namespace n
  WHERE n.nspname <> 'pg_catalog'
    AND n.oid IN (SELECT pronamespace FROM pg_proc p WHERE ${isAllowed.proc("p")})
    AND NOT EXISTS (SELECT FROM pg_proc p
      WHERE p.pronamespace = n.oid AND p.proname = ANY ($1::text[]) AND NOT ${isAllowed.proc("p")})
    AND NOT EXISTS (SELECT FROM pg_operator o WHERE o.oprnamespace = n.oid AND NOT ${isAllowed.operator("o")})
    AND NOT EXISTS (SELECT FROM pg_type t
      WHERE t.typnamespace = n.oid AND t.typname = ANY ($1::text[] || $2::text[]) AND NOT ${isAllowed.type("t")})
  ORDER BY n.nspname`;

/** The first of the names ($1 kinds, $2 schemas, $3 names) that is not only of these extensions. */
export const disallowedNameSql = `
  SELECT requested.kind, requested.schema || '.' || requested.name
  FROM unnest($1::text[], $2::text[], $3::text[]) AS requested (kind, schema, name)
    LEFT JOIN pg_namespace n ON n.nspname = requested.schema
    LEFT JOIN LATERAL (
      SELECT ${isAllowed.proc("p")} AS allowed FROM pg_proc p
      WHERE requested.kind = 'function' AND p.pronamespace = n.oid AND p.proname = requested.name
      UNION ALL
      SELECT ${isAllowed.operator("o")} FROM pg_operator o
      WHERE requested.kind = 'operator' AND o.oprnamespace = n.oid AND o.oprname = requested.name
      UNION ALL
      SELECT ${isAllowed.type("t")} FROM pg_type t
      WHERE requested.kind <> 'operator' AND t.typnamespace = n.oid AND t.typname = requested.name) AS found ON true
  GROUP BY 1, 2 HAVING bool_and(found.allowed) IS NOT TRUE ORDER BY 2 LIMIT 1`;
