import { isAllowed } from "./console-extensions.ts";

/** Volatile functions without effects: they are volatile only because two calls may return different values. */
export const allowedVolatileFunctions = [
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
 * Stable or immutable functions that are denied: they run a string as SQL, read a complete database, assign a
 * transaction id, access other systems, or call code of users by the name or OID of a type or relation. Volatile
 * functions and input functions of types are denied in general and need no entry.
 */
export const deniedFunctions = [
  "currtid2",
  "cursor_to_xml",
  "cursor_to_xmlschema",
  "database_to_xml",
  "database_to_xml_and_xmlschema",
  "database_to_xmlschema",
  "pg_current_xact_id",
  "pg_current_xact_id_if_assigned",
  "pg_get_object_address",
  "pg_get_partition_constraintdef",
  "pg_input_error_info",
  "pg_input_is_valid",
  "pg_read_binary_file",
  "pg_read_file",
  "query_to_xml",
  "query_to_xml_and_xmlschema",
  "query_to_xmlschema",
  "satisfies_hash_partition",
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

/** First OID of objects that were created after initdb (FirstNormalObjectId). */
const firstUserOid = 16_384;

/** Argument type of input functions. Those of domains, arrays and composite types also take the type's OID. */
const cstring = 2_275;

/**
 * SQL condition: the function was created by users, neither by the engine nor by an extension that the console allows.
 */
const isUserCreated = (proc: string) => `(${proc}.oid >= ${firstUserOid} AND NOT ${isAllowed.proc(proc)})`;

const isHarmful = (proc: string) =>
  `(${proc}.provolatile = 'v' AND ${proc}.proname <> ALL ($2::text[]) OR ${proc}.proname = ANY ($3::text[])
    OR ${cstring} = ANY (${proc}.proargtypes))`;

/** The first function name of $1 that may not be called. All overloads of a name count, in every schema. */
export const deniedFunctionSql = `
  SELECT proname AS name FROM pg_proc p
  WHERE proname = ANY ($1::text[])
    AND (pronamespace = 'pg_catalog'::regnamespace AND (${isUserCreated("p")} OR ${isHarmful("p")})
      OR ${isAllowed.proc("p")} AND ${isHarmful("p")})
  ORDER BY proname LIMIT 1`;

/**
 * Relations of $1 and all relations that they read: by views, policies, inheritance and partitions. A partition does
 * not include its parent.
 */
const reached = `
  reached (oid) AS (
    SELECT to_regclass(name)::oid FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NOT NULL
    UNION
    SELECT next.oid FROM reached, LATERAL (
      SELECT d.refobjid AS oid FROM pg_rewrite w JOIN pg_class v ON v.oid = w.ev_class AND v.relkind = 'v'
        JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid AND d.refclassid = 'pg_class'::regclass
      WHERE w.ev_class = reached.oid AND w.ev_class >= ${firstUserOid}
      UNION ALL SELECT inhrelid FROM pg_inherits WHERE inhparent = reached.oid
      UNION ALL
      SELECT d.refobjid FROM pg_policy l
        JOIN pg_depend d ON d.classid = 'pg_policy'::regclass AND d.objid = l.oid AND d.refclassid = 'pg_class'::regclass
      WHERE l.polrelid = reached.oid) AS next),
  relations AS (SELECT c.* FROM pg_class c JOIN reached USING (oid) WHERE c.oid >= ${firstUserOid})`;

/**
 * Stored expressions that a statement may evaluate: expressions of views and policies run, the planner folds
 * expressions of indexes, statistics and partition keys, and expressions of domains run when a value is coerced.
 * Constraints of tables are not evaluated, since the session has constraint exclusion off.
 */
const trees = `
  trees (relation, type, part, class, object, tree) AS (
    SELECT c.oid, 0::oid, '', 'pg_rewrite'::regclass, w.oid, w.ev_action::text || w.ev_qual::text
    FROM relations c JOIN pg_rewrite w ON w.ev_class = c.oid WHERE c.relkind = 'v'
    UNION ALL
    SELECT c.oid, 0, '', 'pg_policy'::regclass, l.oid, coalesce(l.polqual::text, '')
    FROM relations c JOIN pg_policy l ON l.polrelid = c.oid WHERE c.relrowsecurity
    UNION ALL
    SELECT c.oid, 0, 'has an index that ', 'pg_class'::regclass, i.indexrelid, concat(i.indexprs, i.indpred)
    FROM relations c JOIN pg_index i ON i.indrelid = c.oid WHERE i.indexprs IS NOT NULL OR i.indpred IS NOT NULL
    UNION ALL
    SELECT c.oid, 0, 'has statistics that ', 'pg_statistic_ext'::regclass, s.oid, s.stxexprs::text
    FROM relations c JOIN pg_statistic_ext s ON s.stxrelid = c.oid WHERE s.stxexprs IS NOT NULL
    UNION ALL
    SELECT c.oid, 0, 'has a partition key that ', 'pg_class'::regclass, p.partrelid, p.partexprs::text
    FROM relations c JOIN pg_partitioned_table p ON p.partrelid = c.oid WHERE p.partexprs IS NOT NULL
    UNION ALL
    SELECT c.oid, 0, 'has a column that ', 'pg_attrdef'::regclass, d.oid, d.adbin::text
    FROM relations c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attgenerated = 'v'
      JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    UNION ALL
    SELECT 0, k.contypid, '', 'pg_constraint'::regclass, k.oid, k.conbin::text
    FROM pg_constraint k WHERE k.contypid >= ${firstUserOid} AND k.conbin IS NOT NULL)`;

/**
 * Calls of users' functions and of harmful functions in these expressions: by dependencies, and by OIDs in their trees.
 */
const calling = `
  calling (relation, type, why) AS (
    SELECT t.relation, t.type, t.part || 'calls a function or operator of users'
    FROM trees t JOIN pg_depend d ON d.classid = t.class AND d.objid = t.object
      LEFT JOIN pg_proc p ON d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid
      LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
    WHERE d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass) AND d.refobjid >= ${firstUserOid}
      AND coalesce(${isAllowed.proc("p")}, ${isAllowed.operator("o")}) IS NOT TRUE
    UNION ALL
    SELECT t.relation, t.type, t.part || 'calls the function ' || p.proname
    FROM trees t, regexp_matches(t.tree, ':(funcid|opfuncid|aggfnoid|winfnoid) (\\d+)', 'g') AS found
      JOIN pg_proc p ON p.oid = found[2]::oid
    WHERE ${isUserCreated("p")} OR ${isHarmful("p")})`;

/**
 * Types whose values cannot be built or planned without such a call: domains with constraints, ranges with functions of
 * users, and types that contain them. A statement gets values of such a type from columns only, and the engine then
 * coerces other values to it implicitly.
 */
const callingTypes = `
  calling_types (oid) AS (
    SELECT type FROM calling WHERE type <> 0
    UNION
    SELECT r.rngtypid FROM pg_range r JOIN pg_proc p ON p.oid IN (r.rngsubdiff, r.rngcanonical) WHERE ${isUserCreated("p")}
    UNION
    SELECT next.oid FROM calling_types c, LATERAL (
      SELECT t.oid FROM pg_type t WHERE c.oid IN (t.typbasetype, t.typelem)
      UNION ALL
      SELECT r.reltype FROM pg_attribute a JOIN pg_class r ON r.oid = a.attrelid
      WHERE a.atttypid = c.oid AND NOT a.attisdropped AND r.reltype <> 0
      UNION ALL SELECT r.rngtypid FROM pg_range r WHERE r.rngsubtype = c.oid
      UNION ALL SELECT r.rngmultitypid FROM pg_range r WHERE r.rngtypid = c.oid
      UNION ALL
      SELECT k.contypid FROM pg_constraint k
        JOIN pg_depend d ON d.classid = 'pg_constraint'::regclass AND d.objid = k.oid AND d.refclassid = 'pg_type'::regclass
      WHERE d.refobjid = c.oid AND k.contypid <> 0) AS next)`;

/**
 * Reason why a relation of $1, or a relation that it reads, is denied, with its name if it is in $1. Stored expressions
 * and column types refer to functions by OID.
 */
export const deniedRelationSql = `
  WITH RECURSIVE ${[reached, trees, calling, callingTypes].join(",")}
  SELECT found.oid::regclass::text, why, (SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) = found.oid LIMIT 1)
  FROM (
  SELECT c.oid, 'is a foreign table' AS why FROM relations c WHERE c.relkind = 'f'
  UNION ALL
  SELECT relation, why FROM calling WHERE relation <> 0
  UNION ALL
  SELECT c.oid,
    'has the column ' || quote_ident(a.attname) || ', whose type ' || format_type(a.atttypid, NULL) || ' calls functions of users'
  FROM relations c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  WHERE a.atttypid IN (SELECT oid FROM calling_types)
  UNION ALL
  SELECT t.relation, t.part || 'uses the type ' || format_type(d.refobjid, NULL) || ', which calls functions of users'
  FROM trees t JOIN pg_depend d ON d.classid = t.class AND d.objid = t.object AND d.refclassid = 'pg_type'::regclass
  WHERE t.relation <> 0 AND d.refobjid IN (SELECT oid FROM calling_types)
  ) AS found LIMIT 1`;

/** A cast that users created with a function of theirs; the engine may apply it implicitly. */
export const userCastSql = `
  SELECT format_type(castsource, NULL) || ' to ' || format_type(casttarget, NULL) AS name
  FROM pg_cast JOIN pg_proc p ON p.oid = castfunc JOIN pg_language l ON l.oid = p.prolang
  WHERE castfunc >= ${firstUserOid} AND (l.lanname NOT IN ('c', 'internal') OR p.provolatile = 'v') LIMIT 1`;
