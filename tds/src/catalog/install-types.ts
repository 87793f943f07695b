import { type Collation, collations, locales } from "../types/collation.ts";
import { literal } from "./literal.ts";

/** Statements that create a collation of PostgreSQL for each one of T-SQL, and the table of them. */
const createCollations = collations
  .map(({ backend, sensitivity }) => {
    const name = `CREATE COLLATION IF NOT EXISTS holdfast_tsql."${backend}"`;
    if (sensitivity === "bin") return `${name} (provider = libc, locale = 'C');`;
    const { locale, isDeterministic } = locales[sensitivity];
    return `${name} (provider = icu, locale = '${locale}', deterministic = ${isDeterministic});`;
  })
  .join("\n");

/** COLLATIONPROPERTY: flags of what is ignored; 1 case, 2 accents, 65536 kana, 131072 width. */
const styles = { ci_as: 196_609, cs_as: 196_608, ci_ai: 196_611, cs_ai: 196_610, bin: 0 } as const;

function collationRow({ name, description, backend, sensitivity, isUtf8, wire }: Collation): string {
  const version = (wire[3] ?? 0) >> 4;
  const texts = [name, description, backend].map(literal);
  return `(${[...texts, isUtf8 ? 65_001 : 1_252, styles[sensitivity], version].join(", ")})`;
}

/** The schema, the collations, and a domain for each T-SQL type that PostgreSQL lacks. */
export const types = `
CREATE SCHEMA IF NOT EXISTS holdfast_tsql;
GRANT USAGE ON SCHEMA holdfast_tsql TO PUBLIC;

${createCollations}
CREATE OR REPLACE VIEW holdfast_tsql.collation AS
SELECT t.name, t.description, c.oid AS id, t.code_page, t.style, t.version
  FROM (VALUES ${collations.map(collationRow).join(",\n    ")}) AS t (name, description, backend, code_page, style, version)
  JOIN pg_collation c ON c.collname = t.backend AND c.collnamespace = 'holdfast_tsql'::regnamespace;
GRANT SELECT ON holdfast_tsql.collation TO PUBLIC;

-- Spelling of names with capitals. A row changes what is shown, never what is found, so any role may write it.
CREATE TABLE IF NOT EXISTS holdfast_tsql.spelling (
  schema_name text NOT NULL,
  object_name text NOT NULL,
  column_name text NOT NULL,
  spelling text NOT NULL CHECK (lower(spelling) = CASE column_name WHEN '' THEN object_name ELSE column_name END),
  PRIMARY KEY (schema_name, object_name, column_name)
);
GRANT SELECT, INSERT, UPDATE ON holdfast_tsql.spelling TO PUBLIC;

DO $$
DECLARE
  item record;
BEGIN
  FOR item IN SELECT * FROM (VALUES
    ('bit', 'int2', 'CHECK (VALUE IN (0, 1))'),
    ('tinyint', 'int2', 'CHECK (VALUE BETWEEN 0 AND 255)'),
    ('money', 'numeric(19,4)', ''),
    ('smallmoney', 'numeric(10,4)', ''),
    ('datetime', 'timestamp(3)', ''),
    ('smalldatetime', 'timestamp(0)', ''),
    ('text', 'text', ''),
    ('ntext', 'text', ''),
    ('varchar(max)', 'text', ''),
    ('image', 'bytea', ''),
    ('sql_variant', 'text', '')
  ) AS t (name, base, condition)
  LOOP
    IF NOT EXISTS (SELECT FROM pg_type WHERE typnamespace = 'holdfast_tsql'::regnamespace AND typname = item.name) THEN
      EXECUTE format('CREATE DOMAIN holdfast_tsql.%I AS %s %s', item.name, item.base, item.condition);
    END IF;
  END LOOP;
END
$$;

-- Values of sql_variant as they compare; one of the last four attributes is not NULL.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_type WHERE typnamespace = 'holdfast_tsql'::regnamespace AND typname = 'variant_key') THEN
    CREATE TYPE holdfast_tsql.variant_key AS (rank int2, number numeric, moment timestamp, text text COLLATE holdfast_tsql.ci_as, bytes bytea);
  END IF;
END
$$;

-- Domains of a length come into being with the first column of it. The name is one of four and a number.
CREATE OR REPLACE FUNCTION holdfast_tsql.ensure_domain(kind text, length int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  domain_name text := format('%s(%s)', kind, length);
  base text;
BEGIN
  base := CASE kind
    WHEN 'varchar' THEN format('varchar(%s)', length)
    WHEN 'char' THEN format('bpchar(%s)', length)
    WHEN 'varbinary' THEN format('bytea CHECK (octet_length(VALUE) <= %s)', length)
    WHEN 'binary' THEN format('bytea CHECK (octet_length(VALUE) = %s)', length)
  END;
  IF base IS NULL OR length NOT BETWEEN 1 AND 8000 THEN
    RAISE EXCEPTION 'no type %(%)', kind, length USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF EXISTS (SELECT FROM pg_type WHERE typnamespace = 'holdfast_tsql'::regnamespace AND typname = domain_name) THEN
    RETURN;
  END IF;
  EXECUTE format('CREATE DOMAIN holdfast_tsql.%I AS %s', domain_name, base);
EXCEPTION WHEN duplicate_object OR unique_violation THEN
  NULL;
END
$$;

-- DDL of any session, also over the protocol of PostgreSQL, invalidates the definitions that front ends cache.
CREATE OR REPLACE FUNCTION holdfast_tsql.notify_ddl() RETURNS event_trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_EVENT = 'sql_drop' THEN
    IF NOT EXISTS (SELECT FROM pg_event_trigger_dropped_objects() WHERE NOT is_temporary) THEN RETURN; END IF;
  ELSIF NOT EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE schema_name IS DISTINCT FROM 'pg_temp') THEN RETURN;
  END IF;
  NOTIFY holdfast_tsql_ddl;
END
$$;
DROP EVENT TRIGGER IF EXISTS holdfast_tsql_ddl;
CREATE EVENT TRIGGER holdfast_tsql_ddl ON ddl_command_end EXECUTE FUNCTION holdfast_tsql.notify_ddl();
DROP EVENT TRIGGER IF EXISTS holdfast_tsql_drop;
CREATE EVENT TRIGGER holdfast_tsql_drop ON sql_drop EXECUTE FUNCTION holdfast_tsql.notify_ddl();
`;
