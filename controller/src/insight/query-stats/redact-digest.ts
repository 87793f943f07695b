import { withheld } from "./withheld.ts";

const quotedName = /`(?:[^`]|``)*(?:`|$)/g;
/** The comment in which MySQL abbreviates a list of values. */
const abbreviation = "/* , ... */";
/** Strings, numbers that may be data, and comments other than hints. Lengths of types are shorter numbers. */
const literal = /['"]|\d{5,}|\/\*(?!\+)|#/;

/**
 * The text of a statement digest of MySQL, in which the engine itself has replaced literals by `?` and quoted names. A
 * text in which a literal remains is replaced by `withheld`.
 */
export function redactDigest(text: string): string {
  const unquoted = text.replaceAll(quotedName, "``").replaceAll(abbreviation, "");
  return text === "" || literal.test(unquoted) ? withheld : text;
}
