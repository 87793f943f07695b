/** SQL functions for JSON paths and for FORMAT. */
export const textFunctions = `
-- Names and positions of a path such as strict $.info."first name"[0].
CREATE OR REPLACE FUNCTION holdfast_tsql.json_steps(path text) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT COALESCE(array_agg(COALESCE(m[1], m[2], m[3]) ORDER BY n), '{}')
    FROM regexp_matches(regexp_replace(path COLLATE "C", '^\\s*(append\\s+)?((lax|strict)\\s+)?\\$', '', 'i'),
      '\\."([^"]*)"|\\.([^].[" ]+)|\\[([0-9]+)\\]', 'g') WITH ORDINALITY AS t (m, n)
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.is_strict(path text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT path COLLATE "C" ~* '^\\s*(append\\s+)?strict\\M'
$$;
-- The object or array at the path, as it is written; NULL for other values unless the path is strict.
CREATE OR REPLACE FUNCTION holdfast_tsql.json_query(value text, path text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  part json := value::json #> holdfast_tsql.json_steps(path);
BEGIN
  IF json_typeof(part) IN ('object', 'array') THEN RETURN part::text; END IF;
  IF value IS NOT NULL AND holdfast_tsql.is_strict(path) THEN
    RAISE EXCEPTION 'Object or array cannot be found in the specified JSON path.';
  END IF;
  RETURN NULL;
END
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.json_value(value text, path text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  part json := value::json #> holdfast_tsql.json_steps(path);
BEGIN
  IF json_typeof(part) NOT IN ('object', 'array') THEN RETURN part #>> '{}'; END IF;
  IF value IS NOT NULL AND holdfast_tsql.is_strict(path) THEN
    RAISE EXCEPTION 'Scalar value cannot be found in the specified JSON path.';
  END IF;
  RETURN NULL;
END
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.json_modify(value text, path text, changed jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  steps text[] := holdfast_tsql.json_steps(path);
  document jsonb := value::jsonb;
  present jsonb := document #> steps;
BEGIN
  IF holdfast_tsql.is_strict(path) AND present IS NULL THEN
    RAISE EXCEPTION 'Property cannot be found on the specified JSON path.';
  END IF;
  IF path COLLATE "C" ~* '^\\s*append\\M' THEN
    IF present IS NULL THEN RETURN jsonb_set(document, steps, jsonb_build_array(changed), true)::text; END IF;
    IF jsonb_typeof(present) = 'array' THEN RETURN jsonb_set(document, steps, present || jsonb_build_array(changed))::text; END IF;
    IF holdfast_tsql.is_strict(path) THEN RAISE EXCEPTION 'Array cannot be found in the specified JSON path.'; END IF;
    RETURN document::text;
  END IF;
  IF changed IS NULL THEN
    IF holdfast_tsql.is_strict(path) THEN RETURN jsonb_set(document, steps, 'null')::text; END IF;
    RETURN (document #- steps)::text;
  END IF;
  RETURN jsonb_set(document, steps, changed, true)::text;
END
$$;

-- FORMAT in the culture en-US: patterns of .NET.
CREATE OR REPLACE FUNCTION holdfast_tsql.check_culture(culture text) RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  IF lower(culture COLLATE "C") <> 'en-us' THEN
    RAISE EXCEPTION 'The culture parameter ''%'' provided in the function call is not supported.', culture;
  END IF;
END
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.format_moment(value timestamp, format text, culture text) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  pattern text COLLATE "C" := CASE format COLLATE "C" WHEN 'd' THEN 'M/d/yyyy' WHEN 'D' THEN 'dddd, MMMM d, yyyy' WHEN 't' THEN 'h:mm tt'
    WHEN 'T' THEN 'h:mm:ss tt' WHEN 'f' THEN 'dddd, MMMM d, yyyy h:mm tt' WHEN 'F' THEN 'dddd, MMMM d, yyyy h:mm:ss tt'
    WHEN 'g' THEN 'M/d/yyyy h:mm tt' WHEN 'G' THEN 'M/d/yyyy h:mm:ss tt' WHEN 'm' THEN 'MMMM d' WHEN 'M' THEN 'MMMM d'
    WHEN 'y' THEN 'MMMM yyyy' WHEN 'Y' THEN 'MMMM yyyy' WHEN 's' THEN 'yyyy-MM-ddTHH:mm:ss' WHEN 'u' THEN 'yyyy-MM-dd HH:mm:ssZ'
    WHEN 'o' THEN 'yyyy-MM-ddTHH:mm:ss.fffffff' WHEN 'O' THEN 'yyyy-MM-ddTHH:mm:ss.fffffff'
    WHEN 'r' THEN 'ddd, dd MMM yyyy HH:mm:ss G''M''T' WHEN 'R' THEN 'ddd, dd MMM yyyy HH:mm:ss G''M''T' ELSE format END;
  token text COLLATE "C";
  result text COLLATE "C" := '';
BEGIN
  PERFORM holdfast_tsql.check_culture(culture);
  IF value IS NULL OR format IS NULL THEN RETURN NULL; END IF;
  FOR token IN SELECT m[1] FROM regexp_matches(pattern, '(y+|M+|d+|H+|h+|m+|s+|f+|F+|t+|%.|''[^'']*''|"[^"]*"|\\\\.|.)', 'g') AS m LOOP
    token := ltrim(token, '%');
    result := result || CASE
      WHEN token IN ('y', 'yy') THEN to_char(value, 'YY') WHEN token LIKE 'yyy%' THEN lpad(to_char(value, 'FMYYYY'), 4, '0')
      WHEN token = 'M' THEN to_char(value, 'FMMM') WHEN token = 'MM' THEN to_char(value, 'MM') WHEN token = 'MMM' THEN to_char(value, 'Mon')
      WHEN token LIKE 'MMMM%' THEN to_char(value, 'FMMonth')
      WHEN token = 'd' THEN to_char(value, 'FMDD') WHEN token = 'dd' THEN to_char(value, 'DD') WHEN token = 'ddd' THEN to_char(value, 'Dy')
      WHEN token LIKE 'dddd%' THEN to_char(value, 'FMDay')
      WHEN token = 'H' THEN to_char(value, 'FMHH24') WHEN token LIKE 'HH%' THEN to_char(value, 'HH24')
      WHEN token = 'h' THEN to_char(value, 'FMHH12') WHEN token LIKE 'hh%' THEN to_char(value, 'HH12')
      WHEN token = 'm' THEN to_char(value, 'FMMI') WHEN token LIKE 'mm%' THEN to_char(value, 'MI')
      WHEN token = 's' THEN to_char(value, 'FMSS') WHEN token LIKE 'ss%' THEN to_char(value, 'SS')
      WHEN token ~ '^f+$' THEN left(to_char(value, 'US') || '0', length(token))
      WHEN token ~ '^F+$' THEN rtrim(left(to_char(value, 'US') || '0', length(token)), '0')
      WHEN token = 't' THEN left(to_char(value, 'AM'), 1) WHEN token LIKE 'tt%' THEN to_char(value, 'AM')
      WHEN token ~ '^[''"].*[''"]$' THEN substr(token, 2, length(token) - 2)
      WHEN token ~ '^\\\\.' THEN substr(token, 2)
      ELSE token END;
  END LOOP;
  RETURN result;
END
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.format_number(value numeric, format text, culture text) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  standard text[] := regexp_match(format COLLATE "C", '^([A-Za-z])([0-9]{0,2})$');
  kind text COLLATE "C" := upper(standard[1]);
  digits int := NULLIF(standard[2], '')::int;
  pattern text[];
  decimals int;
  number numeric := value;
  result text COLLATE "C";
BEGIN
  PERFORM holdfast_tsql.check_culture(culture);
  IF value IS NULL OR format IS NULL THEN RETURN NULL; END IF;
  IF kind = 'D' THEN
    RETURN CASE WHEN value < 0 THEN '-' ELSE '' END || lpad(trunc(abs(value))::text, greatest(COALESCE(digits, 1), length(trunc(abs(value))::text)), '0');
  ELSIF kind = 'X' THEN
    result := to_hex(value::int8);
    result := lpad(result, greatest(COALESCE(digits, 1), length(result)), '0');
    RETURN CASE WHEN standard[1] = 'X' THEN upper(result) ELSE result END;
  ELSIF kind = 'G' THEN RETURN trim_scale(value)::text;
  ELSIF kind IN ('N', 'C', 'F', 'P') THEN
    digits := COALESCE(digits, 2);
    number := round(CASE WHEN kind = 'P' THEN value * 100 ELSE value END, digits);
    result := btrim(to_char(abs(number), 'FM' || CASE WHEN kind = 'F' THEN repeat('9', 40) ELSE repeat('999G', 13) || '99' END || '0'
      || CASE WHEN digits > 0 THEN 'D' || repeat('0', digits) ELSE '' END));
    IF kind = 'C' THEN RETURN CASE WHEN number < 0 THEN '($' || result || ')' ELSE '$' || result END; END IF;
    RETURN CASE WHEN number < 0 THEN '-' ELSE '' END || result || CASE WHEN kind = 'P' THEN ' %' ELSE '' END;
  ELSIF kind IS NOT NULL THEN RETURN NULL;
  END IF;
  pattern := regexp_match(split_part(format COLLATE "C", ';', 1), '^([^#0.,]*)([#0,]*)(\\.([#0]*))?(.*)$');
  IF format LIKE '%\\%%' THEN number := value * 100; END IF;
  decimals := length(COALESCE(pattern[4], ''));
  number := round(number, decimals);
  digits := length(replace(replace(pattern[2], ',', ''), '#', ''));
  result := to_char(trunc(abs(number)), 'FM' || CASE WHEN strpos(pattern[2], ',') > 0 THEN repeat('999G', 9) || '99' ELSE repeat('9', 29) END
    || CASE WHEN digits > 0 THEN '0' ELSE '9' END);
  IF digits > 1 AND strpos(pattern[2], ',') = 0 THEN result := lpad(result, greatest(digits, length(result)), '0'); END IF;
  IF decimals > 0 THEN
    result := result || '.' || split_part(abs(number)::text, '.', 2);
    result := regexp_replace(result, '0{0,' || length(regexp_replace(pattern[4], '^.*0', '')) || '}$', '');
    result := rtrim(result, '.');
  END IF;
  RETURN CASE WHEN number < 0 THEN '-' ELSE '' END || pattern[1] || result || pattern[5];
END
$$;

CREATE OR REPLACE FUNCTION holdfast_tsql.hash_bytes(algorithm text, value bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE upper(algorithm COLLATE "C") WHEN 'MD5' THEN decode(md5(value), 'hex') WHEN 'SHA2_256' THEN sha256(value) WHEN 'SHA2_512' THEN sha512(value) END
$$;

-- The last IDENTITY value of a table, in any session.
CREATE OR REPLACE FUNCTION holdfast_tsql.identity_of(name text, property text) RETURNS numeric LANGUAGE plpgsql STABLE AS $$
DECLARE
  table_id oid := holdfast_tsql.object_id(name, 'U')::int8::oid;
  sequence oid;
BEGIN
  SELECT pg_get_serial_sequence(table_id::regclass::text, a.attname)::regclass INTO sequence
    FROM pg_attribute a WHERE a.attrelid = table_id AND a.attidentity <> '' LIMIT 1;
  RETURN (SELECT CASE property WHEN 'seed' THEN s.seqstart WHEN 'increment' THEN s.seqincrement
      ELSE COALESCE(pg_sequence_last_value(sequence), s.seqstart) END FROM pg_sequence s WHERE s.seqrelid = sequence);
END
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.col_length(name text, column_name text) RETURNS int LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT k.max_length FROM sys.columns k WHERE k.object_id = holdfast_tsql.object_id(col_length.name, NULL)
    AND k.name = col_length.column_name COLLATE holdfast_tsql.ci_as LIMIT 1);
END
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.database_property(name text, property text) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN holdfast_tsql.database_id(name) IS NULL THEN NULL ELSE CASE lower(property COLLATE "C")
    WHEN 'collation' THEN 'nvarchar(128):' || holdfast_tsql.server_collation() WHEN 'status' THEN 'nvarchar(128):ONLINE'
    WHEN 'updateability' THEN 'nvarchar(128):' || CASE WHEN pg_is_in_recovery() THEN 'READ_ONLY' ELSE 'READ_WRITE' END
    WHEN 'useraccess' THEN 'nvarchar(128):MULTI_USER' WHEN 'recovery' THEN 'nvarchar(128):FULL'
    WHEN 'isansinulldefault' THEN 'int:0' WHEN 'isautoclose' THEN 'int:0' WHEN 'isautoshrink' THEN 'int:0' WHEN 'isfulltextenabled' THEN 'int:0'
    WHEN 'isinstandby' THEN 'int:0' WHEN 'isparameterizationforced' THEN 'int:0' WHEN 'ispublished' THEN 'int:0' END END
$$;
`;
