import { loadModule, normalizeSync, parseSync, scanSync } from "libpg-query";

/** Loads the parser once; `redactQuery` needs it. */
export const loadNormalizer: () => Promise<void> = loadModule;

export const withheld = "-- withheld: this text cannot be shown without its literals";

/** Token names of all literals except integers. */
const literals: ReadonlySet<string> = new Set(["SCONST", "USCONST", "FCONST", "BCONST", "XCONST"]);
/** Integers up to this length are lengths of types or positions of columns, not data. */
const digitsMax = 4;

/**
 * The query with parameters in place of literals; pure apart from the parser. pg_stat_statements normalizes too, except
 * for a query whose entry was evicted while it was parsed. A text that cannot be parsed, or keeps a literal, is
 * withheld.
 */
export function redactQuery(text: string): string {
  if (text === "") return withheld;
  try {
    const normal = normalizeSync(text);
    // For an invalid text the normalizer returns an error message that quotes it, so both have to parse.
    parseSync(normal);
    parseSync(text);
    const isBare = scanSync(normal).tokens.every(
      ({ tokenName, text: token }) =>
        !literals.has(tokenName) &&
        !tokenName.includes("COMMENT") &&
        (tokenName !== "ICONST" || token.length <= digitsMax),
    );
    return isBare ? normal : withheld;
  } catch {
    return withheld;
  }
}
