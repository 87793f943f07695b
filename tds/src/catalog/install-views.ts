import { codePointCollation } from "../types/collation.ts";
import { compiledModule, isCompiled, isModule, moduleText } from "./module-text.ts";

/**
 * Each text of a view has the collation of T-SQL: PostgreSQL cannot compare texts of which each has another one. Names
 * of PostgreSQL and texts without a COLLATE clause have others.
 */
function collated(text: string): string {
  return text.replaceAll(/::(?:varchar\(\d+\)|char\(2\)|text)(?= AS |,|\n)/g, "$& COLLATE holdfast_tsql.ci_as");
}

/** Catalog views (`sys`, `INFORMATION_SCHEMA`) with the columns that drivers and tools read. */
export const views: string = collated(`
CREATE SCHEMA IF NOT EXISTS sys;
CREATE SCHEMA IF NOT EXISTS tsql_information_schema;
GRANT USAGE ON SCHEMA sys, tsql_information_schema TO PUBLIC;

-- The collation of a column of a view cannot be replaced, so views of an earlier front end are moved away. Views of users
-- continue to read them; those that nobody reads are dropped.
DO $$
DECLARE
  item regclass;
  has_dropped boolean := true;
BEGIN
  IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('sys.indexes') AND attname = 'name'
      AND attcollation <> 'holdfast_tsql.ci_as'::regcollation) THEN
    CREATE SCHEMA IF NOT EXISTS holdfast_tsql_earlier;
    GRANT USAGE ON SCHEMA holdfast_tsql_earlier TO PUBLIC;
    FOR item IN SELECT c.oid FROM pg_class c
      WHERE c.relnamespace IN ('sys'::regnamespace, 'tsql_information_schema'::regnamespace) AND c.relkind = 'v'
    LOOP
      EXECUTE format('ALTER VIEW %s RENAME TO %I', item, (SELECT nspname || '.' || relname || '.' || c.oid
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = item));
      EXECUTE format('ALTER VIEW %s SET SCHEMA holdfast_tsql_earlier', item);
    END LOOP;
    WHILE has_dropped LOOP
      has_dropped := false;
      FOR item IN SELECT c.oid FROM pg_class c WHERE c.relnamespace = 'holdfast_tsql_earlier'::regnamespace LOOP
        BEGIN
          EXECUTE format('DROP VIEW %s', item);
          has_dropped := true;
        EXCEPTION WHEN dependent_objects_still_exist THEN
          NULL;
        END;
      END LOOP;
    END LOOP;
  END IF;
END
$$;

CREATE OR REPLACE FUNCTION holdfast_tsql.spelled(schema_name text, object_name text, column_name text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT COALESCE((SELECT s.spelling FROM holdfast_tsql.spelling s
    WHERE s.schema_name = $1 AND s.object_name = $2 AND s.column_name = $3), CASE $3 WHEN '' THEN $2 ELSE $3 END)
$$;

-- The name of a column's type in T-SQL, with its length in characters or bytes and its digits.
CREATE OR REPLACE FUNCTION holdfast_tsql.describe_type(type_id oid, modifier int,
  OUT name text, OUT length int, OUT "precision" int, OUT scale int)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  base text;
BEGIN
  -- An alias type is a domain over the domain of its base type.
  SELECT y.typbasetype INTO type_id FROM pg_type y
    JOIN pg_type b ON b.oid = y.typbasetype AND b.typtype = 'd' WHERE y.oid = type_id
    UNION ALL SELECT type_id LIMIT 1;
  SELECT y.typname, y.typtype, y.typtypmod, y.typnamespace, b.typname AS base INTO t
    FROM pg_type y LEFT JOIN pg_type b ON b.oid = y.typbasetype WHERE y.oid = type_id;
  base := COALESCE(t.base, t.typname);
  modifier := CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE modifier END;
  name := CASE WHEN t.typtype = 'd' AND t.typnamespace = 'holdfast_tsql'::regnamespace THEN split_part(t.typname, '(', 1) ELSE
    CASE base WHEN 'int2' THEN 'smallint' WHEN 'int4' THEN 'int' WHEN 'int8' THEN 'bigint' WHEN 'float4' THEN 'real'
      WHEN 'float8' THEN 'float' WHEN 'numeric' THEN 'decimal' WHEN 'timestamp' THEN 'datetime2'
      WHEN 'timestamptz' THEN 'datetimeoffset' WHEN 'bytea' THEN 'varbinary' WHEN 'uuid' THEN 'uniqueidentifier'
      WHEN 'bpchar' THEN 'nchar' WHEN 'bool' THEN 'bit' WHEN 'date' THEN 'date' WHEN 'time' THEN 'time' WHEN 'xml' THEN 'xml'
      ELSE 'nvarchar' END END;
  IF name IN ('char', 'varchar', 'nchar', 'nvarchar') THEN
    length := CASE WHEN modifier > 4 THEN modifier - 4 ELSE -1 END;
  ELSIF name IN ('binary', 'varbinary') THEN
    length := COALESCE(substring(t.typname FROM '\\((\\d+)\\)')::int, -1);
  END IF;
  IF base = 'numeric' THEN
    precision := CASE WHEN modifier >= 4 THEN ((modifier - 4) >> 16) & 65535 ELSE 38 END;
    scale := CASE WHEN modifier >= 4 THEN (modifier - 4) & 2047 ELSE 10 END;
  ELSIF name IN ('time', 'datetime2', 'datetimeoffset') THEN
    scale := CASE WHEN modifier < 0 OR modifier = 6 THEN 7 ELSE modifier END;
  ELSE
    precision := CASE name WHEN 'tinyint' THEN 3 WHEN 'smallint' THEN 5 WHEN 'int' THEN 10 WHEN 'bigint' THEN 19
      WHEN 'real' THEN 24 WHEN 'float' THEN 53 END;
    scale := CASE WHEN name IN ('tinyint', 'smallint', 'int', 'bigint') THEN 0 END;
  END IF;
END
$$;

-- Without the views of the catalog, since statements call it for each row.
CREATE OR REPLACE FUNCTION holdfast_tsql.column_property(id int, column_name text, property text) RETURNS int
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE lower(property COLLATE "C")
      WHEN 'isidentity' THEN (a.attidentity <> '')::int WHEN 'allowsnull' THEN (NOT a.attnotnull)::int
      WHEN 'iscomputed' THEN (a.attgenerated <> '')::int WHEN 'columnid' THEN a.attnum
      WHEN 'precision' THEN (SELECT COALESCE(d.precision, d.length) FROM holdfast_tsql.describe_type(a.atttypid, a.atttypmod) d)
      WHEN 'scale' THEN (SELECT d.scale FROM holdfast_tsql.describe_type(a.atttypid, a.atttypmod) d)
      WHEN 'isrowguidcol' THEN 0 WHEN 'ishidden' THEN 0 WHEN 'issparse' THEN 0 WHEN 'isfulltextindexed' THEN 0 WHEN 'isidnotforrepl' THEN 0
      WHEN 'generatedalwaystype' THEN 0 END
    FROM pg_attribute a WHERE a.attrelid = id::oid AND a.attnum > 0 AND NOT a.attisdropped
     AND lower(a.attname) COLLATE "C" = lower(column_name COLLATE "C") LIMIT 1
$$;

CREATE OR REPLACE VIEW sys.schemas AS
SELECT holdfast_tsql.schema_label(nspname)::varchar(128) COLLATE holdfast_tsql.ci_as AS name, oid::int8::int AS schema_id, nspowner::int8::int AS principal_id
  FROM pg_namespace
 WHERE holdfast_tsql.schema_label(nspname) IS NOT NULL;

CREATE OR REPLACE VIEW sys.databases AS
SELECT name::varchar(128) COLLATE holdfast_tsql.ci_as AS name, id AS database_id, NULL::int AS source_database_id, timestamp '2026-01-01' AS create_date, 160::int2 AS compatibility_level,
       holdfast_tsql.server_collation()::text AS collation_name, 0::int2 AS user_access, 0::int2 AS is_read_only,
       0::int2 AS state, 'ONLINE'::text AS state_desc, 1::int2 AS snapshot_isolation_state, 1::int2 AS is_read_committed_snapshot_on
  FROM holdfast_tsql.databases_with_system();

CREATE OR REPLACE VIEW sys.objects AS
SELECT holdfast_tsql.spelled(n.nspname, c.relname, '')::varchar(128) COLLATE holdfast_tsql.ci_as AS name, c.oid::int8::int AS object_id, n.oid::int8::int AS schema_id,
       0 AS parent_object_id,
       CASE c.relkind WHEN 'v' THEN 'V' WHEN 'S' THEN 'SO' ELSE 'U' END::char(2) AS type,
       CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'S' THEN 'SEQUENCE_OBJECT' ELSE 'USER_TABLE' END::varchar(60) AS type_desc,
       timestamp '2026-01-01' AS create_date, timestamp '2026-01-01' AS modify_date, 0::int2 AS is_ms_shipped
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN sys.schemas s ON s.schema_id = n.oid::int8::int
 WHERE c.relkind IN ('r', 'p', 'v', 'S') AND n.nspname <> 'sys'
   AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype IN ('i', 'a') AND c.relkind = 'S')
   AND has_table_privilege(c.oid, 'SELECT')
UNION ALL
SELECT k.conname::varchar(128) COLLATE holdfast_tsql.ci_as, k.oid::int8::int, k.connamespace::int8::int, k.conrelid::int8::int,
       CASE k.contype WHEN 'p' THEN 'PK' WHEN 'u' THEN 'UQ' WHEN 'f' THEN 'F' ELSE 'C' END::char(2),
       CASE k.contype WHEN 'p' THEN 'PRIMARY_KEY_CONSTRAINT' WHEN 'u' THEN 'UNIQUE_CONSTRAINT'
         WHEN 'f' THEN 'FOREIGN_KEY_CONSTRAINT' ELSE 'CHECK_CONSTRAINT' END::text,
       timestamp '2026-01-01', timestamp '2026-01-01', 0::int2
  FROM pg_constraint k JOIN sys.schemas s ON s.schema_id = k.connamespace::int8::int
 WHERE k.contype IN ('p', 'u', 'f', 'c') AND k.conrelid <> 0
UNION ALL
SELECT holdfast_tsql.spelled(n.nspname, p.proname, '')::varchar(128) COLLATE holdfast_tsql.ci_as, p.oid::int8::int, n.oid::int8::int, 0,
       'P'::char(2), 'SQL_STORED_PROCEDURE'::text, timestamp '2026-01-01', timestamp '2026-01-01', 0::int2
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
 WHERE ${isModule} AND has_function_privilege(p.oid, 'EXECUTE') AND holdfast_tsql.schema_label(n.nspname) IS NOT NULL
UNION ALL
SELECT holdfast_tsql.spelled(n.nspname, p.proname, '')::varchar(128) COLLATE holdfast_tsql.ci_as, p.oid::int8::int, n.oid::int8::int,
       COALESCE((SELECT g.tgrelid::int8::int FROM pg_trigger g WHERE g.tgfoid = p.oid LIMIT 1), 0), (m.module ->> 'kind')::char(2),
       CASE m.module ->> 'kind' WHEN 'FN' THEN 'SQL_SCALAR_FUNCTION' WHEN 'IF' THEN 'SQL_INLINE_TABLE_VALUED_FUNCTION'
         WHEN 'TF' THEN 'SQL_TABLE_VALUED_FUNCTION' ELSE 'SQL_TRIGGER' END::text,
       timestamp '2026-01-01', timestamp '2026-01-01', 0::int2
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace CROSS JOIN LATERAL (SELECT ${compiledModule} AS module) m
 WHERE ${isCompiled} AND (m.module ->> 'kind' IN ('FN', 'IF', 'TF') OR (m.module ->> 'kind' = 'TR' AND EXISTS (SELECT FROM pg_trigger g WHERE g.tgfoid = p.oid)))
   AND has_function_privilege(p.oid, 'EXECUTE') AND holdfast_tsql.schema_label(n.nspname) IS NOT NULL;
CREATE OR REPLACE VIEW sys.all_objects AS SELECT * FROM sys.objects;

CREATE OR REPLACE VIEW sys.tables AS
SELECT name, object_id, schema_id, parent_object_id, type, type_desc, create_date, modify_date, is_ms_shipped,
       0::int2 AS is_memory_optimized, 0::int2 AS temporal_type, 0::int2 AS is_external
  FROM sys.objects WHERE type = 'U';
CREATE OR REPLACE VIEW sys.views AS SELECT * FROM sys.objects WHERE type = 'V';

CREATE OR REPLACE VIEW sys.procedures AS SELECT * FROM sys.objects WHERE type = 'P';
CREATE OR REPLACE VIEW sys.sql_modules AS
SELECT p.oid::int8::int AS object_id, ${moduleText}::text AS definition, 1::int2 AS uses_ansi_nulls, 1::int2 AS uses_quoted_identifier
  FROM pg_proc p JOIN sys.schemas s ON s.schema_id = p.pronamespace::int8::int
 WHERE ${isModule} AND has_function_privilege(p.oid, 'EXECUTE')
UNION ALL
SELECT p.oid::int8::int, (${compiledModule} ->> 'text')::text, 1::int2, 1::int2
  FROM pg_proc p JOIN sys.schemas s ON s.schema_id = p.pronamespace::int8::int
 WHERE ${isCompiled} AND ${compiledModule} ->> 'text' IS NOT NULL AND has_function_privilege(p.oid, 'EXECUTE');

CREATE OR REPLACE VIEW sys.triggers AS
SELECT o.name, o.object_id, 1::int2 AS parent_class, 'OBJECT_OR_COLUMN'::varchar(60) AS parent_class_desc, o.parent_object_id AS parent_id,
       o.type, o.type_desc, o.create_date, o.modify_date, o.is_ms_shipped,
       COALESCE((SELECT bool_and(g.tgenabled = 'D') FROM pg_trigger g WHERE g.tgfoid::int8 = o.object_id), false)::int::int2 AS is_disabled,
       COALESCE((SELECT bool_and(g.tgtype & 1 = 1) FROM pg_trigger g WHERE g.tgfoid::int8 = o.object_id), false)::int::int2 AS is_instead_of_trigger
  FROM sys.objects o WHERE o.type = 'TR';

CREATE OR REPLACE VIEW holdfast_tsql.system_type AS
SELECT name, id, max_length
  FROM (VALUES ('image'::text, 34, 16), ('text', 35, 16), ('uniqueidentifier', 36, 16), ('date', 40, 3), ('time', 41, 5),
    ('datetime2', 42, 8), ('datetimeoffset', 43, 10), ('tinyint', 48, 1), ('smallint', 52, 2), ('int', 56, 4),
    ('smalldatetime', 58, 4), ('real', 59, 4), ('money', 60, 8), ('datetime', 61, 8), ('float', 62, 8), ('sql_variant', 98, 8016),
    ('ntext', 99, 16), ('bit', 104, 1), ('decimal', 106, 17), ('smallmoney', 122, 4), ('bigint', 127, 8),
    ('varbinary', 165, 8000), ('varchar', 167, 8000), ('binary', 173, 8000), ('char', 175, 8000), ('nvarchar', 231, 8000),
    ('nchar', 239, 8000), ('xml', 241, -1)) AS t (name, id, max_length);
GRANT SELECT ON holdfast_tsql.system_type TO PUBLIC;

CREATE OR REPLACE VIEW sys.types AS
SELECT name::varchar(128) COLLATE holdfast_tsql.ci_as AS name, id AS system_type_id, id AS user_type_id, 4 AS schema_id, max_length::int2 AS max_length, 0::int2 AS "precision", 0::int2 AS scale,
       1::int2 AS is_nullable, 0::int2 AS is_user_defined, 0::int2 AS is_table_type, 0::int2 AS is_assembly_type,
       NULL::int AS principal_id, NULL::varchar(128) COLLATE holdfast_tsql.ci_as AS collation_name
  FROM holdfast_tsql.system_type t
UNION ALL
SELECT holdfast_tsql.spelled(n.nspname, t.typname, '')::varchar(128) COLLATE holdfast_tsql.ci_as, COALESCE(b.id, 243), t.oid::int8::int, n.oid::int8::int,
       CASE WHEN d.name IN ('nchar', 'nvarchar') AND d.length > 0 THEN d.length * 2 ELSE COALESCE(d.length, b.max_length, -1) END::int2,
       COALESCE(d.precision, 0)::int2, COALESCE(d.scale, 0)::int2,
       (obj_description(t.oid, 'pg_type') IS DISTINCT FROM '-- T-SQL: {"kind":"alias","isNullable":false}')::int::int2, 1::int2,
       (t.typtype = 'c')::int::int2, 0::int2, NULL::int,
       CASE WHEN d.name IN ('char', 'varchar', 'nchar', 'nvarchar', 'text', 'ntext') THEN holdfast_tsql.server_collation() END::varchar(128)
  FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace JOIN sys.schemas s ON s.schema_id = n.oid::int8::int
  LEFT JOIN pg_class c ON c.oid = t.typrelid
  LEFT JOIN LATERAL holdfast_tsql.describe_type(t.oid, t.typtypmod) d ON t.typtype = 'd'
  LEFT JOIN holdfast_tsql.system_type b ON b.name = d.name
 WHERE n.nspname <> 'sys' AND (t.typtype = 'd' OR (c.relkind = 'c' AND starts_with(obj_description(t.oid, 'pg_type'), '-- T-SQL: ')))
   AND has_type_privilege(t.oid, 'USAGE');

CREATE OR REPLACE VIEW sys.table_types AS
SELECT y.*, t.typrelid::int8::int AS type_table_object_id, 0::int2 AS is_memory_optimized
  FROM sys.types y JOIN pg_type t ON t.oid::int8 = y.user_type_id AND t.typtype = 'c' WHERE y.is_table_type = 1;

CREATE OR REPLACE VIEW sys.columns AS
SELECT a.attrelid::int8::int AS object_id, holdfast_tsql.spelled(n.nspname, c.relname, a.attname)::varchar(128) COLLATE holdfast_tsql.ci_as AS name, a.attnum::int AS column_id,
       t.id AS system_type_id, COALESCE(u.oid::int8::int, t.id) AS user_type_id,
       CASE WHEN d.name IN ('nchar', 'nvarchar') AND d.length > 0 THEN d.length * 2 ELSE COALESCE(d.length, t.max_length) END::int2 AS max_length,
       COALESCE(d.precision, 0)::int2 AS "precision", COALESCE(d.scale, 0)::int2 AS scale,
       CASE WHEN d.name IN ('char', 'varchar', 'nchar', 'nvarchar', 'text', 'ntext') THEN COALESCE(l.name, '${codePointCollation.name}') END::varchar(128) AS collation_name,
       (NOT a.attnotnull)::int::int2 AS is_nullable, (a.attidentity <> '')::int::int2 AS is_identity,
       (a.attgenerated <> '')::int::int2 AS is_computed, 0::int2 AS is_rowguidcol, 0::int2 AS is_sparse, 0::int2 AS is_hidden,
       COALESCE(f.oid::int8::int, 0) AS default_object_id
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN sys.schemas s ON s.schema_id = n.oid::int8::int
  CROSS JOIN LATERAL holdfast_tsql.describe_type(a.atttypid, a.atttypmod) d
  LEFT JOIN holdfast_tsql.system_type t ON t.name = d.name
  LEFT JOIN pg_type u ON u.oid = a.atttypid AND u.typtype = 'd' AND u.typnamespace <> 'holdfast_tsql'::regnamespace
  LEFT JOIN pg_attrdef f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
  LEFT JOIN holdfast_tsql.collation l ON l.id = a.attcollation
 WHERE a.attnum > 0 AND NOT a.attisdropped
   AND CASE WHEN c.relkind IN ('r', 'p', 'v') THEN has_table_privilege(c.oid, 'SELECT')
     WHEN c.relkind = 'c' THEN has_type_privilege(c.reltype, 'USAGE') ELSE false END;
CREATE OR REPLACE VIEW sys.all_columns AS SELECT * FROM sys.columns;

CREATE OR REPLACE VIEW sys.identity_columns AS
SELECT k.object_id, k.name, k.column_id, q.seqstart AS seed_value, q.seqincrement AS increment_value, 1::int2 AS is_identity
  FROM sys.columns k
  JOIN pg_depend d ON d.refobjid::int8 = k.object_id AND d.refobjsubid = k.column_id AND d.deptype = 'i'
  JOIN pg_sequence q ON q.seqrelid = d.objid
 WHERE k.is_identity = 1;

CREATE OR REPLACE VIEW sys.computed_columns AS
SELECT k.object_id, k.name, k.column_id, k.system_type_id, k.user_type_id, k.max_length, k.precision, k.scale, k.collation_name, k.is_nullable,
       ('(' || pg_get_expr(f.adbin, f.adrelid) || ')')::text COLLATE holdfast_tsql.ci_as AS definition, 1::int2 AS is_persisted, 1::int2 AS is_computed
  FROM sys.columns k JOIN pg_attrdef f ON f.oid::int8 = k.default_object_id WHERE k.is_computed = 1;

-- Comments of PostgreSQL are descriptions.
CREATE OR REPLACE VIEW sys.extended_properties AS
SELECT 1::int2 AS class, 'OBJECT_OR_COLUMN'::varchar(60) AS class_desc, d.objoid::int8::int AS major_id, d.objsubid AS minor_id,
       'MS_Description'::varchar(128) COLLATE holdfast_tsql.ci_as AS name, ('nvarchar(4000):' || left(d.description, 4000))::holdfast_tsql.sql_variant AS value
  FROM pg_description d JOIN pg_class c ON c.oid = d.objoid AND d.classoid = 'pg_class'::regclass JOIN sys.schemas s ON s.schema_id = c.relnamespace::int8::int
 WHERE has_table_privilege(c.oid, 'SELECT');

CREATE OR REPLACE VIEW sys.sequences AS
SELECT o.*, q.seqstart AS start_value, q.seqincrement AS increment, q.seqmin AS minimum_value, q.seqmax AS maximum_value, q.seqcycle::int::int2 AS is_cycling,
       (q.seqcache > 1)::int::int2 AS is_cached, q.seqcache::int AS cache_size, t.id AS system_type_id, t.id AS user_type_id
  FROM sys.objects o JOIN pg_sequence q ON q.seqrelid::int8 = o.object_id
  LEFT JOIN LATERAL holdfast_tsql.describe_type(q.seqtypid, -1) d ON true LEFT JOIN holdfast_tsql.system_type t ON t.name = d.name;

CREATE OR REPLACE VIEW sys.system_views AS
SELECT c.relname::varchar(128) COLLATE holdfast_tsql.ci_as AS name, c.oid::int8::int AS object_id, 4 AS schema_id, 'V'::char(2) AS type
  FROM pg_class c WHERE c.relnamespace = 'sys'::regnamespace AND c.relkind = 'v';

-- Sessions of PostgreSQL; the level of isolation is known of the own session alone.
CREATE OR REPLACE VIEW sys.dm_exec_sessions AS
SELECT (a.pid % 32767)::int2 AS session_id, a.backend_start::timestamp(3) AS login_time, NULL::varchar(128) AS host_name,
       a.application_name::varchar(128) COLLATE holdfast_tsql.ci_as AS program_name, a.usename::varchar(128) COLLATE holdfast_tsql.ci_as AS login_name,
       CASE a.state WHEN 'active' THEN 'running' ELSE 'sleeping' END::varchar(30) AS status,
       CASE WHEN a.pid = pg_backend_pid() THEN CASE COALESCE(NULLIF(current_setting('holdfast_tsql.isolation', true), ''), 'read committed')
         WHEN 'read uncommitted' THEN 1 WHEN 'repeatable read' THEN 3 WHEN 'serializable' THEN 4 WHEN 'snapshot' THEN 5 ELSE 2 END ELSE 2 END::int2 AS transaction_isolation_level,
       5::int2 AS database_id, 1::int2 AS is_user_process
  FROM pg_stat_activity a WHERE a.datname = current_database() AND a.backend_type = 'client backend';

CREATE OR REPLACE VIEW sys.dm_exec_connections AS
SELECT s.session_id, s.login_time AS connect_time, 'TCP'::varchar(40) AS net_transport, 'TSQL'::varchar(40) AS protocol_type,
       'TRUE'::varchar(40) AS encrypt_option, 'SQL'::varchar(40) AS auth_scheme, NULL::varchar(48) AS client_net_address,
       NULL::varchar(48) AS local_net_address, 1433::int4 AS local_tcp_port
  FROM sys.dm_exec_sessions s;

CREATE OR REPLACE VIEW sys.default_constraints AS
SELECT ('df_' || c.relname || '_' || a.attname)::text AS name, f.oid::int8::int AS object_id, f.adrelid::int8::int AS parent_object_id,
       f.adnum::int AS parent_column_id, pg_get_expr(f.adbin, f.adrelid)::text AS definition
  FROM pg_attrdef f JOIN pg_class c ON c.oid = f.adrelid JOIN sys.schemas s ON s.schema_id = c.relnamespace::int8::int
  JOIN pg_attribute a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
 WHERE a.attgenerated = '';

CREATE OR REPLACE VIEW sys.indexes AS
SELECT i.indrelid::int8::int AS object_id,
       CASE WHEN i.indisprimary OR k.oid IS NOT NULL THEN x.relname ELSE split_part(x.relname, '.', -1) END::text AS name,
       i.indexrelid::int8::int AS index_id, CASE WHEN i.indisprimary THEN 1 ELSE 2 END::int2 AS type,
       CASE WHEN i.indisprimary THEN 'CLUSTERED' ELSE 'NONCLUSTERED' END::varchar(60) AS type_desc,
       i.indisunique::int::int2 AS is_unique, i.indisprimary::int::int2 AS is_primary_key,
       (k.contype = 'u' AND k.contype IS NOT NULL)::int::int2 AS is_unique_constraint,
       0::int2 AS is_disabled, 0::int2 AS is_hypothetical, (i.indpred IS NOT NULL)::int::int2 AS has_filter,
       pg_get_expr(i.indpred, i.indrelid)::text AS filter_definition
  FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN sys.objects o ON o.object_id = i.indrelid::int8::int
  LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.contype IN ('p', 'u');

CREATE OR REPLACE VIEW sys.index_columns AS
SELECT i.indrelid::int8::int AS object_id, i.indexrelid::int8::int AS index_id, p.n::int AS index_column_id, p.attnum::int AS column_id,
       CASE WHEN p.n <= i.indnkeyatts THEN p.n ELSE 0 END::int2 AS key_ordinal,
       CASE WHEN p.n <= i.indnkeyatts THEN i.indoption[p.n - 1] & 1 ELSE 0 END::int2 AS is_descending_key,
       (p.n > i.indnkeyatts)::int::int2 AS is_included_column
  FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS p (attnum, n)
  JOIN sys.objects o ON o.object_id = i.indrelid::int8::int;

-- Pages and rows as PostgreSQL last estimated them.
CREATE OR REPLACE VIEW sys.dm_db_partition_stats AS
SELECT c.oid::int8 AS partition_id, i.object_id, i.index_id, 1::int AS partition_number, c.relpages::int8 AS in_row_data_page_count,
       c.relpages::int8 AS in_row_used_page_count, c.relpages::int8 AS used_page_count, c.relpages::int8 AS reserved_page_count,
       greatest(c.reltuples, 0)::int8 AS row_count
  FROM sys.indexes i JOIN pg_class c ON c.oid::int8 = i.index_id;

-- The rows of sp_helpindex, without the joins of the views above.
CREATE OR REPLACE VIEW sys.holdfast_index_keys AS
SELECT i.indrelid::int8::int AS object_id,
       CASE WHEN i.indisprimary OR k.oid IS NOT NULL THEN x.relname ELSE split_part(x.relname, '.', -1) END::varchar(128) AS index_name,
       (CASE WHEN i.indisprimary THEN 'clustered' ELSE 'nonclustered' END || CASE WHEN i.indisunique THEN ', unique' ELSE '' END
         || CASE WHEN i.indisprimary THEN ', primary key' WHEN k.oid IS NOT NULL THEN ', unique key' ELSE '' END || ' located on PRIMARY')::varchar(210) AS index_description,
       (SELECT string_agg(holdfast_tsql.spelled(n.nspname, c.relname, a.attname) || CASE WHEN i.indoption[p.n - 1] & 1 = 1 THEN '(-)' ELSE '' END, ', ' ORDER BY p.n)
          FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS p (attnum, n) JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = p.attnum
         WHERE p.n <= i.indnkeyatts)::varchar(2126) AS index_keys
  FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.contype IN ('p', 'u')
 WHERE has_table_privilege(c.oid, 'SELECT');

CREATE OR REPLACE VIEW sys.key_constraints AS
SELECT o.name, o.object_id, o.schema_id, o.parent_object_id, o.type, o.type_desc, k.conindid::int8::int AS unique_index_id
  FROM sys.objects o JOIN pg_constraint k ON k.oid::int8 = o.object_id WHERE o.type IN ('PK', 'UQ');

CREATE OR REPLACE VIEW sys.check_constraints AS
SELECT o.name, o.object_id, o.schema_id, o.parent_object_id, pg_get_expr(k.conbin, k.conrelid)::text AS definition
  FROM sys.objects o JOIN pg_constraint k ON k.oid::int8 = o.object_id WHERE o.type = 'C';

CREATE OR REPLACE VIEW sys.foreign_keys AS
SELECT o.name, o.object_id, o.schema_id, o.parent_object_id, k.confrelid::int8::int AS referenced_object_id, 0::int2 AS is_disabled,
       CASE k.confdeltype WHEN 'c' THEN 1 WHEN 'n' THEN 2 WHEN 'd' THEN 3 ELSE 0 END::int2 AS delete_referential_action,
       CASE k.confdeltype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET_NULL' WHEN 'd' THEN 'SET_DEFAULT' ELSE 'NO_ACTION' END::text AS delete_referential_action_desc,
       CASE k.confupdtype WHEN 'c' THEN 1 WHEN 'n' THEN 2 WHEN 'd' THEN 3 ELSE 0 END::int2 AS update_referential_action,
       CASE k.confupdtype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET_NULL' WHEN 'd' THEN 'SET_DEFAULT' ELSE 'NO_ACTION' END::text AS update_referential_action_desc
  FROM sys.objects o JOIN pg_constraint k ON k.oid::int8 = o.object_id WHERE o.type = 'F';

CREATE OR REPLACE VIEW sys.foreign_key_columns AS
SELECT k.oid::int8::int AS constraint_object_id, p.n::int AS constraint_column_id, k.conrelid::int8::int AS parent_object_id,
       p.own::int AS parent_column_id, k.confrelid::int8::int AS referenced_object_id, p.other::int AS referenced_column_id
  FROM pg_constraint k JOIN sys.schemas s ON s.schema_id = k.connamespace::int8::int
  CROSS JOIN LATERAL unnest(k.conkey, k.confkey) WITH ORDINALITY AS p (own, other, n) WHERE k.contype = 'f';

CREATE OR REPLACE VIEW tsql_information_schema.schemata AS
SELECT (holdfast_tsql.current_database_name() COLLATE "C")::varchar(128) AS catalog_name, name AS schema_name, 'dbo'::varchar(128) AS schema_owner FROM sys.schemas;

CREATE OR REPLACE VIEW tsql_information_schema.tables AS
SELECT (holdfast_tsql.current_database_name() COLLATE "C")::varchar(128) AS table_catalog, s.name AS table_schema, o.name AS table_name,
       CASE o.type WHEN 'V' THEN 'VIEW' ELSE 'BASE TABLE' END::varchar(10) COLLATE holdfast_tsql.ci_as AS table_type
  FROM sys.objects o JOIN sys.schemas s ON s.schema_id = o.schema_id WHERE o.type IN ('U', 'V');

CREATE OR REPLACE VIEW tsql_information_schema.columns AS
SELECT (holdfast_tsql.current_database_name() COLLATE "C")::varchar(128) AS table_catalog, s.name AS table_schema, o.name AS table_name, k.name AS column_name,
       k.column_id AS ordinal_position, pg_get_expr(f.adbin, f.adrelid)::text AS column_default,
       CASE k.is_nullable WHEN 1 THEN 'YES' ELSE 'NO' END::varchar(3) COLLATE holdfast_tsql.ci_as AS is_nullable, t.name AS data_type,
       CASE WHEN k.collation_name IS NULL AND t.name NOT IN ('binary', 'varbinary') THEN NULL
         WHEN t.name IN ('nchar', 'nvarchar') AND k.max_length > 0 THEN k.max_length / 2 ELSE k.max_length END::int AS character_maximum_length,
       CASE WHEN t.name IN ('tinyint', 'smallint', 'int', 'bigint', 'decimal', 'money', 'smallmoney', 'real', 'float') THEN k.precision END AS numeric_precision,
       CASE WHEN t.name IN ('tinyint', 'smallint', 'int', 'bigint', 'decimal', 'money', 'smallmoney') THEN k.scale::int END AS numeric_scale,
       CASE WHEN t.name IN ('date', 'time', 'datetime', 'datetime2', 'datetimeoffset', 'smalldatetime') THEN k.scale END AS datetime_precision,
       k.collation_name
  FROM sys.columns k JOIN sys.objects o ON o.object_id = k.object_id JOIN sys.schemas s ON s.schema_id = o.schema_id
  LEFT JOIN sys.types t ON t.user_type_id = k.system_type_id
  LEFT JOIN pg_attrdef f ON f.oid::int8 = k.default_object_id;

CREATE OR REPLACE VIEW tsql_information_schema.table_constraints AS
SELECT (holdfast_tsql.current_database_name() COLLATE "C")::varchar(128) AS constraint_catalog, s.name AS constraint_schema, o.name AS constraint_name,
       (holdfast_tsql.current_database_name() COLLATE "C")::varchar(128) AS table_catalog, s.name AS table_schema, p.name AS table_name,
       CASE o.type WHEN 'PK' THEN 'PRIMARY KEY' WHEN 'UQ' THEN 'UNIQUE' WHEN 'F' THEN 'FOREIGN KEY' ELSE 'CHECK' END::varchar(11) COLLATE holdfast_tsql.ci_as AS constraint_type
  FROM sys.objects o JOIN sys.schemas s ON s.schema_id = o.schema_id JOIN sys.objects p ON p.object_id = o.parent_object_id
 WHERE o.type IN ('PK', 'UQ', 'F', 'C');

CREATE OR REPLACE VIEW tsql_information_schema.key_column_usage AS
SELECT (holdfast_tsql.current_database_name() COLLATE "C")::varchar(128) AS constraint_catalog, s.name AS constraint_schema, o.name AS constraint_name,
       s.name AS table_schema, p.name AS table_name, c.name AS column_name, u.n::int AS ordinal_position
  FROM pg_constraint k CROSS JOIN LATERAL unnest(k.conkey) WITH ORDINALITY AS u (attnum, n)
  JOIN sys.objects o ON o.object_id = k.oid::int8::int JOIN sys.schemas s ON s.schema_id = o.schema_id
  JOIN sys.objects p ON p.object_id = o.parent_object_id
  JOIN sys.columns c ON c.object_id = p.object_id AND c.column_id = u.attnum
 WHERE k.contype IN ('p', 'u', 'f');

CREATE OR REPLACE VIEW tsql_information_schema.routines AS
SELECT (holdfast_tsql.current_database_name() COLLATE "C")::varchar(128) AS specific_catalog, s.name AS specific_schema, o.name AS specific_name,
       (holdfast_tsql.current_database_name() COLLATE "C")::varchar(128) AS routine_catalog, s.name AS routine_schema, o.name AS routine_name,
       'PROCEDURE'::varchar(20) COLLATE holdfast_tsql.ci_as AS routine_type, m.definition AS routine_definition
  FROM sys.procedures o JOIN sys.schemas s ON s.schema_id = o.schema_id JOIN sys.sql_modules m ON m.object_id = o.object_id;

CREATE OR REPLACE VIEW tsql_information_schema.views AS
SELECT (holdfast_tsql.current_database_name() COLLATE "C")::varchar(128) AS table_catalog, s.name AS table_schema, o.name AS table_name,
       pg_get_viewdef(o.object_id::oid)::text AS view_definition, 'NONE'::varchar(7) AS check_option, 'NO'::varchar(2) AS is_updatable
  FROM sys.views o JOIN sys.schemas s ON s.schema_id = o.schema_id;

CREATE OR REPLACE VIEW tsql_information_schema.sequences AS
SELECT (holdfast_tsql.current_database_name() COLLATE "C")::varchar(128) AS sequence_catalog, s.name AS sequence_schema, o.name AS sequence_name,
       type.name AS data_type, o.start_value, o.minimum_value, o.maximum_value, o.increment
  FROM sys.sequences o JOIN sys.schemas s ON s.schema_id = o.schema_id LEFT JOIN holdfast_tsql.system_type type ON type.id = o.system_type_id;

CREATE OR REPLACE VIEW tsql_information_schema.constraint_column_usage AS
SELECT (holdfast_tsql.current_database_name() COLLATE "C")::varchar(128) AS table_catalog, s.name AS table_schema, p.name AS table_name, c.name AS column_name,
       (holdfast_tsql.current_database_name() COLLATE "C")::varchar(128) AS constraint_catalog, s.name AS constraint_schema, o.name AS constraint_name
  FROM pg_constraint k CROSS JOIN LATERAL unnest(k.conkey) AS u (attnum)
  JOIN sys.objects o ON o.object_id = k.oid::int8::int JOIN sys.schemas s ON s.schema_id = o.schema_id
  JOIN sys.objects p ON p.object_id = o.parent_object_id
  JOIN sys.columns c ON c.object_id = p.object_id AND c.column_id = u.attnum
 WHERE k.contype IN ('p', 'u', 'f', 'c');

CREATE OR REPLACE VIEW tsql_information_schema.check_constraints AS
SELECT (holdfast_tsql.current_database_name() COLLATE "C")::varchar(128) AS constraint_catalog, s.name AS constraint_schema, o.name AS constraint_name, o.definition AS check_clause
  FROM sys.check_constraints o JOIN sys.schemas s ON s.schema_id = o.schema_id;

CREATE OR REPLACE VIEW tsql_information_schema.referential_constraints AS
SELECT (holdfast_tsql.current_database_name() COLLATE "C")::varchar(128) AS constraint_catalog, s.name AS constraint_schema, o.name AS constraint_name,
       (holdfast_tsql.current_database_name() COLLATE "C")::varchar(128) AS unique_constraint_catalog, us.name AS unique_constraint_schema, x.relname::varchar(128) COLLATE holdfast_tsql.ci_as AS unique_constraint_name,
       'SIMPLE'::varchar(7) AS match_option, replace(o.update_referential_action_desc COLLATE "C", '_', ' ')::varchar(11) COLLATE holdfast_tsql.ci_as AS update_rule,
       replace(o.delete_referential_action_desc COLLATE "C", '_', ' ')::varchar(11) COLLATE holdfast_tsql.ci_as AS delete_rule
  FROM sys.foreign_keys o JOIN sys.schemas s ON s.schema_id = o.schema_id JOIN pg_constraint k ON k.oid::int8 = o.object_id
  JOIN pg_class x ON x.oid = k.conindid JOIN sys.schemas us ON us.schema_id = x.relnamespace::int8::int;

GRANT SELECT ON ALL TABLES IN SCHEMA sys, tsql_information_schema TO PUBLIC;
`);
