import { isListed } from "./console-extensions.ts";

/** Volatile functions that do nothing but answer: the engine has them so because two answers may differ. */
export const harmlessVolatile = [
  "clock_timestamp",
  "gen_random_uuid",
  "pg_column_size",
  "pg_database_size",
  "pg_indexes_size",
  "pg_relation_size",
  "pg_table_size",
  "pg_tablespace_size",
  "pg_total_relation_size",
  "random",
  "random_normal",
  "statement_timestamp",
  "timeofday",
  "uuidv4",
  "uuidv7",
] as const;

/**
 * Functions that the engine calls stable or immutable and that run a text as SQL, read whole databases, take a transaction id
 * or reach outside of the database. Volatile ones need no place here.
 */
export const denied = [
  "currtid2",
  "cursor_to_xml",
  "cursor_to_xmlschema",
  "database_to_xml",
  "database_to_xml_and_xmlschema",
  "database_to_xmlschema",
  "pg_current_xact_id",
  "pg_current_xact_id_if_assigned",
  "pg_get_object_address",
  "pg_read_binary_file",
  "pg_read_file",
  "query_to_xml",
  "query_to_xml_and_xmlschema",
  "query_to_xmlschema",
  "schema_to_xml",
  "schema_to_xml_and_xmlschema",
  "schema_to_xmlschema",
  "set_config",
  "table_to_xml",
  "table_to_xml_and_xmlschema",
  "table_to_xmlschema",
  "ts_rewrite",
  "ts_stat",
  "txid_current",
  "txid_current_if_assigned",
] as const;

/** Objects from here on were made after the cluster. */
const firstMade = 16_384;

/** By users: neither the engine's own nor of an extension that the console knows. */
const isMade = (proc: string) => `(${proc}.oid >= ${firstMade} AND NOT ${isListed.proc(proc)})`;

const isHarmful = (proc: string) =>
  `(${proc}.provolatile = 'v' AND ${proc}.proname <> ALL ($2::text[]) OR ${proc}.proname = ANY ($3::text[]))`;

/** A function of $1 that may not be called, by its name; of a name all are judged, whatever their arguments and schema. */
export const deniedFunctionSql = `
  SELECT proname AS name FROM pg_proc p
  WHERE proname = ANY ($1::text[])
    AND (pronamespace = 'pg_catalog'::regnamespace AND (${isMade("p")} OR ${isHarmful("p")})
      OR ${isListed.proc("p")} AND ${isHarmful("p")})
  ORDER BY proname LIMIT 1`;

/**
 * Why a relation of $1, or one behind it, may not be read, and which of $1 it is itself, if any. What a view or a policy of rows calls stands in its stored tree by
 * number: functions of users are refused there, those of the engine are judged as above.
 */
export const deniedRelationSql = `
  WITH RECURSIVE reached (oid) AS (
    SELECT to_regclass(name)::oid FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NOT NULL
    UNION
    SELECT next.oid FROM reached, LATERAL (
      SELECT d.refobjid AS oid FROM pg_rewrite w
        JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid AND d.refclassid = 'pg_class'::regclass
      WHERE w.ev_class = reached.oid AND w.ev_class >= ${firstMade}
      UNION ALL SELECT inhrelid FROM pg_inherits WHERE inhparent = reached.oid
      UNION ALL
      SELECT d.refobjid FROM pg_policy l
        JOIN pg_depend d ON d.classid = 'pg_policy'::regclass AND d.objid = l.oid AND d.refclassid = 'pg_class'::regclass
      WHERE l.polrelid = reached.oid) AS next),
  relations AS (SELECT c.* FROM pg_class c JOIN reached USING (oid) WHERE c.oid >= ${firstMade}),
  trees AS (
    SELECT c.oid AS relation, 'pg_rewrite'::regclass AS class, w.oid AS object, w.ev_action::text || w.ev_qual::text AS tree
    FROM relations c JOIN pg_rewrite w ON w.ev_class = c.oid WHERE c.relkind = 'v'
    UNION ALL
    SELECT c.oid, 'pg_policy'::regclass, l.oid, coalesce(l.polqual::text, '')
    FROM relations c JOIN pg_policy l ON l.polrelid = c.oid WHERE c.relrowsecurity),
  called AS (
    SELECT relation, found[2]::oid AS function
    FROM trees, regexp_matches(tree, ':(funcid|opfuncid|aggfnoid|winfnoid) (\\d+)', 'g') AS found)
  SELECT found.oid::regclass::text, why, (SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) = found.oid LIMIT 1)
  FROM (
  SELECT c.oid, 'is a foreign table' AS why FROM relations c WHERE c.relkind = 'f'
  UNION ALL
  SELECT t.relation, 'calls a function or operator of users'
  FROM trees t JOIN pg_depend d ON d.classid = t.class AND d.objid = t.object
    LEFT JOIN pg_proc p ON d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid
    LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
  WHERE d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass) AND d.refobjid >= ${firstMade}
    AND coalesce(${isListed.proc("p")}, ${isListed.operator("o")}) IS NOT TRUE
  UNION ALL
  SELECT called.relation, 'calls the function ' || p.proname
  FROM called JOIN pg_proc p ON p.oid = called.function WHERE ${isMade("p")} OR ${isHarmful("p")}
  ) AS found LIMIT 1`;

/** A cast that users have made out of a function of theirs; the engine may call it without a word in the statement. */
export const madeCastSql = `
  SELECT format_type(castsource, NULL) || ' to ' || format_type(casttarget, NULL) AS name
  FROM pg_cast JOIN pg_proc p ON p.oid = castfunc JOIN pg_language l ON l.oid = p.prolang
  WHERE castfunc >= ${firstMade} AND (l.lanname NOT IN ('c', 'internal') OR p.provolatile = 'v') LIMIT 1`;
