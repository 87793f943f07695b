/**
 * Extensions that the console lets use: their functions are C, or their bodies name pg_catalog themselves, so that nothing of
 * users' stands between. Not among them: what runs a text as SQL (tablefunc), and bodies that look names up (earthdistance).
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
 * Owner of all that an extension's script makes. The extension's own owner can make functions of theirs its members.
 */
const superuser = 10;

const listed = `ARRAY[${extensions.map((name) => `'${name}'`).join(", ")}]`;

const members = (catalog: string) => `
  SELECT m.objid FROM pg_extension e JOIN pg_depend m ON m.refclassid = 'pg_extension'::regclass AND m.refobjid = e.oid
  WHERE e.extname = ANY (${listed}) AND m.classid = '${catalog}'::regclass AND m.deptype = 'e'`;

/** Is this row of pg_proc, pg_operator or pg_type of an extension above? */
export const isListed = {
  proc: (row: string): string => `(${row}.proowner = ${superuser} AND ${row}.oid IN (${members("pg_proc")}))`,
  operator: (row: string): string => `(${row}.oprowner = ${superuser} AND ${row}.oid IN (${members("pg_operator")}))`,
  type: (row: string): string => `(${row}.typowner = ${superuser} AND ${row}.oid IN (${members("pg_type")}))`,
};

/**
 * Schemas of these extensions that names without a schema are looked for in, after pg_catalog: those where nothing but the
 * extension's own could be found by the functions $1 and the types $2, or by any operator.
 */
export const extensionSchemasSql = `
  SELECT quote_ident(n.nspname) FROM pg_namespace n
  WHERE n.nspname <> 'pg_catalog'
    AND n.oid IN (SELECT pronamespace FROM pg_proc p WHERE ${isListed.proc("p")})
    AND NOT EXISTS (SELECT FROM pg_proc p
      WHERE p.pronamespace = n.oid AND p.proname = ANY ($1::text[]) AND NOT ${isListed.proc("p")})
    AND NOT EXISTS (SELECT FROM pg_operator o WHERE o.oprnamespace = n.oid AND NOT ${isListed.operator("o")})
    AND NOT EXISTS (SELECT FROM pg_type t
      WHERE t.typnamespace = n.oid AND t.typname = ANY ($1::text[] || $2::text[]) AND NOT ${isListed.type("t")})
  ORDER BY n.nspname`;

/** The first of the names ($1 kinds, $2 schemas, $3 names) that is not of these extensions alone. */
export const strangeNameSql = `
  SELECT asked.kind, asked.schema || '.' || asked.name
  FROM unnest($1::text[], $2::text[], $3::text[]) AS asked (kind, schema, name)
    LEFT JOIN pg_namespace n ON n.nspname = asked.schema
    LEFT JOIN LATERAL (
      SELECT ${isListed.proc("p")} AS listed FROM pg_proc p
      WHERE asked.kind = 'function' AND p.pronamespace = n.oid AND p.proname = asked.name
      UNION ALL
      SELECT ${isListed.operator("o")} FROM pg_operator o
      WHERE asked.kind = 'operator' AND o.oprnamespace = n.oid AND o.oprname = asked.name
      UNION ALL
      SELECT ${isListed.type("t")} FROM pg_type t
      WHERE asked.kind <> 'operator' AND t.typnamespace = n.oid AND t.typname = asked.name) AS found ON true
  GROUP BY 1, 2 HAVING bool_and(found.listed) IS NOT TRUE ORDER BY 2 LIMIT 1`;
