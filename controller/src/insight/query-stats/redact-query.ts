import { loadModule, normalizeSync, parseSync, scanSync } from "libpg-query";
import { withheld } from "./withheld.ts";

/** Loads the parser once; `redactQuery` needs it. */
export const loadNormalizer: () => Promise<void> = loadModule;

/** Token names of all literals except integers. */
const literals: ReadonlySet<string> = new Set(["SCONST", "USCONST", "FCONST", "BCONST", "XCONST"]);
/** Maximum number of digits of an integer that is a length of a type or a position of a column, and not data. */
const digitsMax = 4;

/**
 * The query with parameters in place of literals. pg_stat_statements normalizes queries as well, except for a query
 * whose entry was evicted while it was parsed. A text that cannot be parsed, or still has a literal, is replaced by
 * `withheld`.
 */
export function redactQuery(text: string): string {
  if (text === "") return withheld;
  try {
    const normal = normalizeSync(text);
    // For an invalid text the normalizer returns an error message that quotes it, so the parser has to accept both.
    parseSync(normal);
    parseSync(text);
    const hasNoLiteral = scanSync(normal).tokens.every(
      ({ tokenName, text: token }) =>
        !literals.has(tokenName) &&
        !tokenName.includes("COMMENT") &&
        (tokenName !== "ICONST" || token.length <= digitsMax),
    );
    return hasNoLiteral ? normal : withheld;
  } catch {
    return withheld;
  }
}
