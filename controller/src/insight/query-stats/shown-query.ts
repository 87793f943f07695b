import { loadModule, normalizeSync, parseSync, scanSync } from "libpg-query";

/** Loads the parser once; `shownQuery` needs it. */
export const loadNormalizer: () => Promise<void> = loadModule;

export const withheld = "-- withheld: this text cannot be shown without its literals";

/** Literals of all kinds but integers, by the lexer's names. */
const literals: ReadonlySet<string> = new Set(["SCONST", "USCONST", "FCONST", "BCONST", "XCONST"]);
/** Longer integers than those of types, lengths and places of columns. */
const digitsMax = 4;

/**
 * Pure, but for the parser: a text with parameters in the place of literals. The engine does that too, but not for a text
 * whose entry went while it was parsed, so it is done again; what does not parse, or has a literal left, is not shown.
 */
export function shownQuery(text: string): string {
  if (text === "") return withheld;
  try {
    const normal = normalizeSync(text);
    // Of a text that it cannot read it answers what is wrong, with a part of it.
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
