import { search } from "./install-search.ts";
import { compiledModule, isCompiled, isModule } from "./module-text.ts";

/**
 * SQL functions for T-SQL functions that no expression of PostgreSQL can replace. Strings compare case-insensitively.
 */
export const functions = `
CREATE OR REPLACE FUNCTION holdfast_tsql.text_to_bit(value text) RETURNS int2
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE lower(value COLLATE "C") WHEN 'true' THEN 1 WHEN 'false' THEN 0 ELSE (value::numeric <> 0)::int END::int2
$$;

-- An empty text is zero, and a fraction is no integer.
CREATE OR REPLACE FUNCTION holdfast_tsql.text_to_integer(value text) RETURNS int8
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN btrim(value) COLLATE "C" = '' THEN 0 ELSE value::int8 END
$$;

-- The first three groups of a uniqueidentifier are little-endian in its bytes.
CREATE OR REPLACE FUNCTION holdfast_tsql.swap_guid(value bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT decode(substr(h, 7, 2) || substr(h, 5, 2) || substr(h, 3, 2) || substr(h, 1, 2) || substr(h, 11, 2) || substr(h, 9, 2)
    || substr(h, 15, 2) || substr(h, 13, 2) || substr(h, 17), 'hex') FROM (SELECT encode(value, 'hex') AS h) AS t
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.guid_to_binary(value uuid) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT holdfast_tsql.swap_guid(uuid_send(value))
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.binary_to_guid(value bytea) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT encode(holdfast_tsql.swap_guid(substring(value || decode(repeat('00', 16), 'hex') FROM 1 FOR 16)), 'hex')::uuid
$$;

-- An empty text is 1900-01-01 00:00:00.
CREATE OR REPLACE FUNCTION holdfast_tsql.moment_text(value text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN btrim(value) COLLATE "C" = '' THEN '1900-01-01 00:00:00' ELSE value END
$$;

CREATE OR REPLACE FUNCTION holdfast_tsql.binary_to_integer(value bytea) RETURNS int8
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT ('x' || lpad(encode(substring(value FROM greatest(1, octet_length(value) - 7)), 'hex'), 16, '0'))::bit(64)::int8
$$;

CREATE OR REPLACE FUNCTION holdfast_tsql.integer_to_binary(value int8, bytes int) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT substring(int8send(value) FROM 9 - bytes)
$$;

-- Style 0 has the bytes of the text, 1 and 2 its hexadecimal digits.
CREATE OR REPLACE FUNCTION holdfast_tsql.text_to_binary(value text, style int, is_national boolean) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE
    WHEN style = 1 THEN decode(substring(value FROM 3), 'hex')
    WHEN style = 2 THEN decode(value, 'hex')
    WHEN is_national THEN (
      SELECT string_agg(set_byte(set_byte('\\x0000'::bytea, 0, ascii(c) & 255), 1, (ascii(c) >> 8) & 255), ''::bytea ORDER BY n)
        FROM regexp_split_to_table(value COLLATE "C", '') WITH ORDINALITY AS t (c, n))
    ELSE convert_to(value, 'WIN1252')
  END
$$;

CREATE OR REPLACE FUNCTION holdfast_tsql.binary_to_text(value bytea, style int) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE style
    WHEN 1 THEN '0x' || upper(encode(value, 'hex'))
    WHEN 2 THEN upper(encode(value, 'hex'))
    ELSE convert_from(value, 'WIN1252')
  END
$$;

-- Formats of CONVERT by their styles.
CREATE OR REPLACE FUNCTION holdfast_tsql.timestamp_to_text(value timestamp, style int, kind text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE style
    WHEN 0 THEN to_char(value, 'Mon FMDD YYYY') || lpad(to_char(value, 'FMHH12:MIAM'), 8)
    WHEN 100 THEN to_char(value, 'Mon FMDD YYYY') || lpad(to_char(value, 'FMHH12:MIAM'), 8)
    WHEN 1 THEN to_char(value, 'MM/DD/YY')
    WHEN 101 THEN to_char(value, 'MM/DD/YYYY')
    WHEN 102 THEN to_char(value, 'YYYY.MM.DD')
    WHEN 103 THEN to_char(value, 'DD/MM/YYYY')
    WHEN 104 THEN to_char(value, 'DD.MM.YYYY')
    WHEN 105 THEN to_char(value, 'DD-MM-YYYY')
    WHEN 106 THEN to_char(value, 'DD Mon YYYY')
    WHEN 107 THEN to_char(value, 'Mon DD, YYYY')
    WHEN 108 THEN to_char(value, 'HH24:MI:SS')
    WHEN 110 THEN to_char(value, 'MM-DD-YYYY')
    WHEN 111 THEN to_char(value, 'YYYY/MM/DD')
    WHEN 112 THEN to_char(value, 'YYYYMMDD')
    WHEN 114 THEN to_char(value, 'HH24:MI:SS:MS')
    WHEN 120 THEN to_char(value, 'YYYY-MM-DD HH24:MI:SS')
    WHEN 126 THEN to_char(value, 'YYYY-MM-DD"T"HH24:MI:SS.MS')
    WHEN 121 THEN CASE kind
      WHEN 'date' THEN to_char(value, 'YYYY-MM-DD')
      WHEN 'datetime2' THEN to_char(value, 'YYYY-MM-DD HH24:MI:SS.US') || '0'
      ELSE to_char(value, 'YYYY-MM-DD HH24:MI:SS.MS')
    END
  END
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.timestamp_to_text(value time, style int, kind text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN style IN (0, 100) THEN to_char(value, 'FMHH12:MIAM') WHEN style = 108 THEN to_char(value, 'HH24:MI:SS')
    ELSE to_char(value, 'HH24:MI:SS.US') || '0' END
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.timestamp_to_text(value timestamptz, style int, kind text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT to_char(value AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '0 +00:00'
$$;

CREATE OR REPLACE FUNCTION holdfast_tsql.text_to_timestamp(value text, style int) RETURNS timestamp
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE
    WHEN style IN (103, 104, 105) THEN to_timestamp(translate(value, '/.', '--'), 'DD-MM-YYYY HH24:MI:SS')::timestamp
    ELSE value::timestamp
  END
$$;

-- LIKE with the sets [a-z] and [^a-z]; the pattern becomes a regular expression.
CREATE OR REPLACE FUNCTION holdfast_tsql.like_expression(pattern text, escape text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  c text COLLATE "C";
  at int := 1;
  stop int;
  result text COLLATE "C" := '';
  p text COLLATE "C" := pattern;
BEGIN
  WHILE at <= length(p) LOOP
    c := substr(p, at, 1);
    IF c = escape COLLATE "C" AND at < length(p) THEN
      at := at + 1;
      result := result || regexp_replace(substr(p, at, 1), '([^[:alnum:]])', '\\\\\\1');
    ELSIF c = '%' THEN result := result || '.*';
    ELSIF c = '_' THEN result := result || '.';
    ELSIF c = '[' THEN
      stop := strpos(substr(p, at + 2), ']');
      IF stop = 0 THEN RETURN 'a\\Ab'; END IF;
      c := substr(p, at + 1, stop);
      result := result || CASE WHEN left(c, 1) = '^' THEN '[^' || regexp_replace(substr(c, 2), '([][\\\\^])', '\\\\\\1', 'g')
        ELSE '[' || regexp_replace(c, '([][\\\\^])', '\\\\\\1', 'g') END || ']';
      at := at + stop + 1;
    ELSE result := result || regexp_replace(c, '([^[:alnum:]])', '\\\\\\1');
    END IF;
    at := at + 1;
  END LOOP;
  RETURN '^' || result || '$';
END
$$;

${search}
CREATE OR REPLACE FUNCTION holdfast_tsql.date_part_of(part text, value timestamp) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE part
    WHEN 'dayofyear' THEN extract(doy FROM value)
    WHEN 'weekday' THEN extract(dow FROM value) + 1
    WHEN 'week' THEN floor((extract(doy FROM value) - 1 + extract(dow FROM date_trunc('year', value))) / 7) + 1
    WHEN 'iso_week' THEN extract(week FROM value)
    WHEN 'second' THEN floor(extract(second FROM value))
    WHEN 'millisecond' THEN mod(floor(extract(milliseconds FROM value))::int, 1000)
    WHEN 'microsecond' THEN mod(extract(microseconds FROM value)::int8, 1000000)
    WHEN 'nanosecond' THEN mod(extract(microseconds FROM value)::int8, 1000000) * 1000
    ELSE extract(epoch FROM interval '0') + date_part(part, value)
  END::int
$$;

CREATE OR REPLACE FUNCTION holdfast_tsql.date_name_of(part text, value timestamp) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE part
    WHEN 'month' THEN to_char(value, 'FMMonth')
    WHEN 'weekday' THEN to_char(value, 'FMDay')
    ELSE holdfast_tsql.date_part_of(part, value)::text
  END
$$;

CREATE OR REPLACE FUNCTION holdfast_tsql.date_add(part text, amount int, value timestamp) RETURNS timestamp
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT value + amount * CASE part
    WHEN 'year' THEN interval '1 year'
    WHEN 'quarter' THEN interval '3 months'
    WHEN 'month' THEN interval '1 month'
    WHEN 'week' THEN interval '7 days'
    WHEN 'iso_week' THEN interval '7 days'
    WHEN 'hour' THEN interval '1 hour'
    WHEN 'minute' THEN interval '1 minute'
    WHEN 'second' THEN interval '1 second'
    WHEN 'millisecond' THEN interval '1 millisecond'
    WHEN 'microsecond' THEN interval '1 microsecond'
    WHEN 'nanosecond' THEN interval '0.001 microsecond'
    ELSE interval '1 day'
  END
$$;

-- The number of boundaries between two moments, not of elapsed units.
CREATE OR REPLACE FUNCTION holdfast_tsql.date_diff(part text, low timestamp, high timestamp) RETURNS int8
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE part
    WHEN 'year' THEN extract(year FROM high) - extract(year FROM low)
    WHEN 'quarter' THEN (extract(year FROM high) - extract(year FROM low)) * 4 + extract(quarter FROM high) - extract(quarter FROM low)
    WHEN 'month' THEN (extract(year FROM high) - extract(year FROM low)) * 12 + extract(month FROM high) - extract(month FROM low)
    WHEN 'week' THEN ((high::date - extract(dow FROM high)::int) - (low::date - extract(dow FROM low)::int)) / 7
    WHEN 'iso_week' THEN (date_trunc('week', high)::date - date_trunc('week', low)::date) / 7
    WHEN 'hour' THEN extract(epoch FROM date_trunc('hour', high) - date_trunc('hour', low)) / 3600
    WHEN 'minute' THEN extract(epoch FROM date_trunc('minute', high) - date_trunc('minute', low)) / 60
    WHEN 'second' THEN extract(epoch FROM date_trunc('second', high) - date_trunc('second', low))
    WHEN 'millisecond' THEN extract(epoch FROM date_trunc('milliseconds', high) - date_trunc('milliseconds', low)) * 1000
    WHEN 'microsecond' THEN extract(epoch FROM high - low) * 1000000
    WHEN 'nanosecond' THEN extract(epoch FROM high - low) * 1000000000
    ELSE high::date - low::date
  END::int8
$$;

-- A variant is the text of its base type, a colon and its value, such as decimal(5,2):1.50; other texts are nvarchar.
CREATE OR REPLACE FUNCTION holdfast_tsql.variant_type(value text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT COALESCE((regexp_match(value COLLATE "C", '^((?:bit|tinyint|smallint|int|bigint|decimal|smallmoney|money|real|float|date|time|datetime2|'
    || 'datetimeoffset|datetime|smalldatetime|char|varchar|nchar|nvarchar|binary|varbinary|uniqueidentifier)(?:\\([0-9]+(?:,[0-9]+)?\\))?):'))[1],
    CASE WHEN value IS NOT NULL THEN 'nvarchar(4000)' END)
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.variant_value(value text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN starts_with(value COLLATE "C", holdfast_tsql.variant_type(value) || ':')
    THEN substr(value COLLATE "C", length(holdfast_tsql.variant_type(value)) + 2) ELSE value COLLATE "C" END
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.variant_to_number(value text) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN holdfast_tsql.variant_type(value) ~ '^(?:var)?binary' THEN holdfast_tsql.binary_to_integer(holdfast_tsql.variant_value(value)::bytea)
    ELSE holdfast_tsql.variant_value(value)::numeric END
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.variant_to_binary(value text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE split_part(holdfast_tsql.variant_type(value), '(', 1)
    WHEN 'binary' THEN holdfast_tsql.variant_value(value)::bytea WHEN 'varbinary' THEN holdfast_tsql.variant_value(value)::bytea
    WHEN 'bigint' THEN holdfast_tsql.integer_to_binary(holdfast_tsql.variant_value(value)::int8, 8)
    WHEN 'int' THEN holdfast_tsql.integer_to_binary(holdfast_tsql.variant_value(value)::int8, 4)
    WHEN 'smallint' THEN holdfast_tsql.integer_to_binary(holdfast_tsql.variant_value(value)::int8, 2)
    WHEN 'tinyint' THEN holdfast_tsql.integer_to_binary(holdfast_tsql.variant_value(value)::int8, 1)
    WHEN 'bit' THEN holdfast_tsql.integer_to_binary(holdfast_tsql.variant_value(value)::int8, 1)
    WHEN 'uniqueidentifier' THEN holdfast_tsql.guid_to_binary(holdfast_tsql.variant_value(value)::uuid)
    ELSE holdfast_tsql.text_to_binary(holdfast_tsql.variant_value(value), 0, holdfast_tsql.variant_type(value) LIKE 'n%') END
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.variant_to_temporal(value text) RETURNS timestamp
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN holdfast_tsql.variant_type(value) ~ '^(?:bit|tinyint|smallint|int|bigint|decimal|smallmoney|money|real|float)'
      THEN timestamp '1900-01-01' + holdfast_tsql.variant_value(value)::float8 * interval '1 day'
    WHEN holdfast_tsql.variant_type(value) ~ '^time' THEN timestamp '1900-01-01' + holdfast_tsql.variant_value(value)::time
    WHEN holdfast_tsql.variant_type(value) ~ '^datetimeoffset' THEN holdfast_tsql.variant_value(value)::timestamptz AT TIME ZONE 'UTC'
    ELSE holdfast_tsql.variant_value(value)::timestamp END
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.variant_to_text(value text, style int) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE split_part(holdfast_tsql.variant_type(value), '(', 1)
    WHEN 'datetime' THEN holdfast_tsql.timestamp_to_text(holdfast_tsql.variant_value(value)::timestamp, COALESCE(style, 0), 'datetime')
    WHEN 'smalldatetime' THEN holdfast_tsql.timestamp_to_text(holdfast_tsql.variant_value(value)::timestamp, COALESCE(style, 0), 'smalldatetime')
    WHEN 'date' THEN holdfast_tsql.timestamp_to_text(holdfast_tsql.variant_value(value)::timestamp, CASE style WHEN 126 THEN 121 ELSE COALESCE(style, 121) END, 'date')
    WHEN 'datetime2' THEN holdfast_tsql.timestamp_to_text(holdfast_tsql.variant_value(value)::timestamp, COALESCE(style, 121), 'datetime2')
    WHEN 'time' THEN holdfast_tsql.timestamp_to_text(holdfast_tsql.variant_value(value)::time, COALESCE(style, 121), 'time')
    WHEN 'datetimeoffset' THEN holdfast_tsql.timestamp_to_text(holdfast_tsql.variant_value(value)::timestamptz, COALESCE(style, 121), 'datetimeoffset')
    WHEN 'uniqueidentifier' THEN upper(holdfast_tsql.variant_value(value))
    WHEN 'money' THEN round(holdfast_tsql.variant_value(value)::numeric, 2)::text
    WHEN 'smallmoney' THEN round(holdfast_tsql.variant_value(value)::numeric, 2)::text
    WHEN 'binary' THEN holdfast_tsql.binary_to_text(holdfast_tsql.variant_value(value)::bytea, 0)
    WHEN 'varbinary' THEN holdfast_tsql.binary_to_text(holdfast_tsql.variant_value(value)::bytea, 0)
    ELSE holdfast_tsql.variant_value(value) END
$$;
-- Families in the order of comparisons, lowest first: uniqueidentifier, binary, characters, exact and approximate numbers, dates.
CREATE OR REPLACE FUNCTION holdfast_tsql.variant_key(value text) RETURNS holdfast_tsql.variant_key
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN value IS NULL THEN NULL
    WHEN b = 'uniqueidentifier' THEN ROW(1, NULL, NULL, upper(v), NULL)::holdfast_tsql.variant_key
    WHEN b IN ('binary', 'varbinary') THEN ROW(2, NULL, NULL, NULL, v::bytea)::holdfast_tsql.variant_key
    WHEN b IN ('char', 'varchar', 'nchar', 'nvarchar') THEN ROW(3, NULL, NULL, rtrim(v), NULL)::holdfast_tsql.variant_key
    WHEN b IN ('real', 'float') THEN ROW(5, v::float8::numeric, NULL, NULL, NULL)::holdfast_tsql.variant_key
    WHEN b IN ('date', 'time', 'datetime', 'smalldatetime', 'datetime2', 'datetimeoffset')
      THEN ROW(6, NULL, holdfast_tsql.variant_to_temporal(value), NULL, NULL)::holdfast_tsql.variant_key
    ELSE ROW(4, v::numeric, NULL, NULL, NULL)::holdfast_tsql.variant_key END
  FROM (SELECT split_part(holdfast_tsql.variant_type(value), '(', 1) AS b, holdfast_tsql.variant_value(value) AS v) AS t
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.variant_property(value text, property text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN value IS NULL THEN NULL ELSE CASE lower(property COLLATE "C")
    WHEN 'basetype' THEN 'nvarchar(128):' || b
    WHEN 'precision' THEN 'int:' || COALESCE(CASE b WHEN 'decimal' THEN a[1] WHEN 'time' THEN '16' WHEN 'datetime2' THEN '27' WHEN 'datetimeoffset' THEN '34' END,
      CASE b WHEN 'bit' THEN '1' WHEN 'tinyint' THEN '3' WHEN 'smallint' THEN '5' WHEN 'int' THEN '10' WHEN 'bigint' THEN '19' WHEN 'money' THEN '19'
        WHEN 'smallmoney' THEN '10' WHEN 'real' THEN '24' WHEN 'float' THEN '53' WHEN 'datetime' THEN '23' WHEN 'smalldatetime' THEN '16' WHEN 'date' THEN '10' ELSE '0' END)
    WHEN 'scale' THEN 'int:' || CASE b WHEN 'decimal' THEN a[2] WHEN 'money' THEN '4' WHEN 'smallmoney' THEN '4' WHEN 'datetime' THEN '3'
      WHEN 'time' THEN a[1] WHEN 'datetime2' THEN a[1] WHEN 'datetimeoffset' THEN a[1] ELSE '0' END
    WHEN 'maxlength' THEN 'int:' || CASE WHEN b IN ('nchar', 'nvarchar') THEN (a[1]::int * 2)::text WHEN b IN ('char', 'varchar', 'binary', 'varbinary') THEN a[1]
      ELSE bytes::text END
    WHEN 'totalbytes' THEN 'int:' || (CASE WHEN b IN ('nchar', 'nvarchar') THEN 8 + length(v) * 2 WHEN b IN ('char', 'varchar') THEN 8 + length(v)
      WHEN b IN ('binary', 'varbinary') THEN 4 + octet_length(v::bytea) WHEN b = 'decimal' THEN 4 + bytes ELSE 2 + bytes END)::text
    WHEN 'collation' THEN CASE WHEN b IN ('char', 'varchar', 'nchar', 'nvarchar') THEN 'nvarchar(128):' || holdfast_tsql.server_collation() END
  END END
  FROM (SELECT split_part(holdfast_tsql.variant_type(value), '(', 1) AS b, holdfast_tsql.variant_value(value) AS v,
    string_to_array(substring(holdfast_tsql.variant_type(value) FROM '\\((.*)\\)'), ',') AS a) AS t
  CROSS JOIN LATERAL (SELECT CASE b WHEN 'bit' THEN 1 WHEN 'tinyint' THEN 1 WHEN 'smallint' THEN 2 WHEN 'int' THEN 4 WHEN 'bigint' THEN 8
    WHEN 'real' THEN 4 WHEN 'float' THEN 8 WHEN 'money' THEN 8 WHEN 'smallmoney' THEN 4 WHEN 'datetime' THEN 8 WHEN 'smalldatetime' THEN 4
    WHEN 'date' THEN 3 WHEN 'time' THEN 5 WHEN 'datetime2' THEN 8 WHEN 'datetimeoffset' THEN 10 WHEN 'uniqueidentifier' THEN 16
    WHEN 'decimal' THEN CASE WHEN a[1]::int <= 9 THEN 5 WHEN a[1]::int <= 19 THEN 9 WHEN a[1]::int <= 28 THEN 13 ELSE 17 END END AS bytes) AS s
$$;

CREATE OR REPLACE FUNCTION holdfast_tsql.last_part(name text, back int) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT lower(btrim(split_part(name COLLATE "C", '.', -back), '[]"'))
$$;

CREATE OR REPLACE FUNCTION holdfast_tsql.object_id(name text, kind text) RETURNS int
LANGUAGE sql STABLE AS $$
  SELECT c.oid::int8::int FROM pg_class c
   WHERE lower(c.relname) = holdfast_tsql.last_part(name, 1) COLLATE "C"
     AND CASE WHEN left(holdfast_tsql.last_part(name, 1) COLLATE "C", 1) = '#' THEN c.relnamespace = pg_my_temp_schema()
         ELSE c.relnamespace = holdfast_tsql.schema_of_object(name COLLATE "C") END
     AND (kind IS NULL OR c.relkind = ANY (CASE upper(kind COLLATE "C") WHEN 'U' THEN '{r,p}' WHEN 'V' THEN '{v}' WHEN 'SO' THEN '{S}' ELSE '{}' END::"char"[]))
     AND c.relkind IN ('r', 'p', 'v', 'S')
  UNION ALL
  SELECT p.oid::int8::int FROM pg_proc p
   WHERE lower(p.proname) = holdfast_tsql.last_part(name, 1) COLLATE "C" AND (kind IS NULL OR upper(kind COLLATE "C") = 'P')
     AND p.pronamespace = holdfast_tsql.schema_of_object(name COLLATE "C")
     AND ${isModule}
  UNION ALL
  SELECT p.oid::int8::int FROM pg_proc p
   WHERE lower(p.proname) = holdfast_tsql.last_part(name, 1) COLLATE "C"
     AND p.pronamespace = holdfast_tsql.schema_of_object(name COLLATE "C")
     AND ${isCompiled} AND ${compiledModule} ->> 'kind' LIKE COALESCE(upper(kind COLLATE "C"), '%') COLLATE "C"
   LIMIT 1
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.object_name(id int) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT COALESCE(s.spelling, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN holdfast_tsql.spelling s ON s.schema_name = n.nspname AND s.object_name = c.relname AND s.column_name = ''
   WHERE c.oid = id::oid
  UNION ALL
  SELECT COALESCE(s.spelling, p.proname) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    LEFT JOIN holdfast_tsql.spelling s ON s.schema_name = n.nspname AND s.object_name = p.proname AND s.column_name = ''
   WHERE p.oid = id::oid AND (${isModule} OR ${compiledModule} IS NOT NULL)
   LIMIT 1
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.object_schema_name(id int) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT holdfast_tsql.schema_label(n.nspname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = id::oid
  UNION ALL SELECT holdfast_tsql.schema_label(n.nspname) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE p.oid = id::oid
  UNION ALL SELECT holdfast_tsql.schema_label(n.nspname) FROM pg_constraint k JOIN pg_namespace n ON n.oid = k.connamespace WHERE k.oid = id::oid
  LIMIT 1
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.object_definition(id int) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT m.definition FROM sys.sql_modules m WHERE m.object_id = id
    UNION ALL SELECT d.definition FROM sys.default_constraints d WHERE d.object_id = id
    UNION ALL SELECT k.definition FROM sys.check_constraints k WHERE k.object_id = id LIMIT 1);
END
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.schema_name(id int) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN id IS NULL THEN 'dbo' ELSE (SELECT holdfast_tsql.schema_label(nspname) FROM pg_namespace WHERE oid = id::oid) END
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.schema_id(name text) RETURNS int LANGUAGE sql STABLE AS $$
  SELECT oid::int8::int FROM pg_namespace
   WHERE nspname = holdfast_tsql.schema_in(holdfast_tsql.current_prefix(), lower(COALESCE(name, 'dbo') COLLATE "C"))
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.type_id(name text) RETURNS int LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT y.user_type_id FROM sys.types y
    WHERE y.name = holdfast_tsql.last_part(type_id.name, 1) COLLATE holdfast_tsql.ci_as
      AND (y.is_user_defined = 0 OR y.schema_id = holdfast_tsql.schema_id(NULLIF(holdfast_tsql.last_part(type_id.name, 2), '')))
    ORDER BY y.is_user_defined LIMIT 1);
END
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.type_name(id int) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT y.name FROM sys.types y WHERE y.user_type_id = id LIMIT 1);
END
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.col_name(id int, number int) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT k.name FROM sys.columns k WHERE k.object_id = id AND k.column_id = number);
END
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.object_property(id int, property text) RETURNS int LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT CASE lower(property COLLATE "C")
      WHEN 'isusertable' THEN (o.type = 'U')::int WHEN 'istable' THEN (o.type = 'U')::int WHEN 'isview' THEN (o.type = 'V')::int
      WHEN 'isprocedure' THEN (o.type = 'P')::int WHEN 'istrigger' THEN (o.type = 'TR')::int WHEN 'isscalarfunction' THEN (o.type = 'FN')::int
      WHEN 'isinlinefunction' THEN (o.type = 'IF')::int WHEN 'istablefunction' THEN (o.type IN ('IF', 'TF'))::int
      WHEN 'isprimarykey' THEN (o.type = 'PK')::int WHEN 'isforeignkey' THEN (o.type = 'F')::int WHEN 'isuniquecnst' THEN (o.type = 'UQ')::int
      WHEN 'ischeckcnst' THEN (o.type = 'C')::int WHEN 'isconstraint' THEN (o.type IN ('PK', 'UQ', 'F', 'C'))::int WHEN 'ismsshipped' THEN 0
      WHEN 'schemaid' THEN o.schema_id
      WHEN 'tablehasidentity' THEN EXISTS (SELECT FROM sys.columns k WHERE k.object_id = id AND k.is_identity = 1)::int
      WHEN 'tablehasprimarykey' THEN EXISTS (SELECT FROM sys.objects p WHERE p.parent_object_id = id AND p.type = 'PK')::int
      WHEN 'tablehastimestamp' THEN 0 END
    FROM sys.objects o WHERE o.object_id = id);
END
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.collation_property(name text, property text) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT 'int:' || CASE lower(property COLLATE "C") WHEN 'codepage' THEN c.code_page WHEN 'lcid' THEN 1033
      WHEN 'comparisonstyle' THEN c.style WHEN 'version' THEN c.version END
    FROM holdfast_tsql.collation c WHERE lower(c.name COLLATE "C") = lower($1 COLLATE "C")
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.server_property(name text) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT CASE lower(name COLLATE "C")
    WHEN 'productversion' THEN '16.0.1000.6'
    WHEN 'productmajorversion' THEN '16'
    WHEN 'productlevel' THEN 'RTM'
    WHEN 'edition' THEN 'Standard Edition (64-bit)'
    WHEN 'engineedition' THEN '2'
    WHEN 'collation' THEN holdfast_tsql.server_collation()
    WHEN 'servername' THEN 'holdfast'
    WHEN 'machinename' THEN 'holdfast'
    WHEN 'isintegratedsecurityonly' THEN '0'
    WHEN 'ishadrenabled' THEN '0'
    WHEN 'isclustered' THEN '0'
  END
$$;
`;
