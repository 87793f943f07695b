/** Letters with accents, and the letter of each: one character each, so that positions in a text remain. */
function accentedLetters(): { readonly from: string; readonly to: string } {
  let from = "";
  let to = "";
  for (let code = 0xc0; code < 0x2000; code += 1) {
    const letter = String.fromCodePoint(code);
    const base = letter.normalize("NFD").replaceAll(/\p{M}/gu, "");
    if (base.length !== 1 || base === letter) continue;
    from += letter;
    to += base;
  }
  return { from, to };
}

const { from, to } = accentedLetters();

/**
 * Functions that search in texts. PostgreSQL 17 cannot search in a collation that is not deterministic, so both texts
 * lose first what the collation does not distinguish: their case, their accents, or both. Functions without the
 * sensitivity ignore the case; views and modules of earlier front ends call them too.
 */
export const search = String.raw`
CREATE OR REPLACE FUNCTION holdfast_tsql.without_accents(value text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT translate(value COLLATE "C", '${from}', '${to}')
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.folded(value text, sensitivity text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE sensitivity WHEN 'ci_as' THEN lower(value COLLATE "und-x-icu") COLLATE "C"
    WHEN 'ci_ai' THEN lower(holdfast_tsql.without_accents(value) COLLATE "und-x-icu") COLLATE "C"
    WHEN 'cs_ai' THEN holdfast_tsql.without_accents(value) COLLATE "C" ELSE value COLLATE "C" END
$$;

CREATE OR REPLACE FUNCTION holdfast_tsql.is_like(value text, pattern text, escape text, sensitivity text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN escape IS NULL AND strpos(pattern COLLATE "C", '[') = 0 AND strpos(pattern COLLATE "C", E'\\') = 0
      THEN holdfast_tsql.folded(value, sensitivity) COLLATE "C" LIKE holdfast_tsql.folded(pattern, sensitivity) COLLATE "C"
    ELSE holdfast_tsql.folded(value, sensitivity) COLLATE "C" ~ ('(?s)' || holdfast_tsql.like_expression(
      holdfast_tsql.folded(pattern, sensitivity) COLLATE "C", holdfast_tsql.folded(escape, sensitivity) COLLATE "C"))
  END
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.is_like(value text, pattern text, escape text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT holdfast_tsql.is_like(value, pattern, escape, 'ci_as')
$$;

CREATE OR REPLACE FUNCTION holdfast_tsql.char_index(part text, value text, start int, sensitivity text) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN part COLLATE "C" = '' THEN 0 ELSE COALESCE(NULLIF(
    strpos(substr(holdfast_tsql.folded(value, sensitivity) COLLATE "C", greatest(start, 1)), holdfast_tsql.folded(part, sensitivity) COLLATE "C"), 0)
    + greatest(start, 1) - 1, 0) END
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.char_index(part text, value text, start int) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT holdfast_tsql.char_index(part, value, start, 'ci_as')
$$;

CREATE OR REPLACE FUNCTION holdfast_tsql.pat_index(pattern text, value text, sensitivity text) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT regexp_instr(holdfast_tsql.folded(value, sensitivity) COLLATE "C",
    '(?s)' || CASE WHEN left(pattern COLLATE "C", 1) = '%' THEN '' ELSE '^' END
    || btrim(holdfast_tsql.like_expression(btrim(holdfast_tsql.folded(pattern, sensitivity) COLLATE "C", '%'), NULL), '^$')
    || CASE WHEN right(pattern COLLATE "C", 1) = '%' THEN '' ELSE '$' END, 1, 1, 0)
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.pat_index(pattern text, value text) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT holdfast_tsql.pat_index(pattern, value, 'ci_as')
$$;

CREATE OR REPLACE FUNCTION holdfast_tsql.replace_text(value text, part text, replacement text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN part COLLATE "C" = '' THEN value ELSE regexp_replace(value COLLATE "und-x-icu",
    regexp_replace(part COLLATE "und-x-icu", '([^[:alnum:]])', '\\\1', 'g'), replace(replacement COLLATE "und-x-icu", E'\\', E'\\\\'), 'gi') END
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.replace_text(value text, part text, replacement text, sensitivity text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  rest text COLLATE "C" := value;
  other text COLLATE "C" := holdfast_tsql.folded(value, sensitivity) COLLATE "C";
  wanted text COLLATE "C" := holdfast_tsql.folded(part, sensitivity) COLLATE "C";
  result text COLLATE "C" := '';
  at int;
BEGIN
  IF sensitivity IN ('cs_as', 'bin') THEN RETURN replace(rest, wanted, replacement COLLATE "C"); END IF;
  IF value IS NULL OR part IS NULL OR replacement IS NULL THEN RETURN NULL; END IF;
  IF wanted = '' THEN RETURN value; END IF;
  LOOP
    at := strpos(other, wanted);
    IF at = 0 THEN RETURN result || rest; END IF;
    result := result || left(rest, at - 1) || (replacement COLLATE "C");
    rest := substr(rest, at + length(wanted));
    other := substr(other, at + length(wanted));
  END LOOP;
END
$$;
`;
