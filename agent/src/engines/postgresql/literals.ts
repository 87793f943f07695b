/** A statement without its literals, or the reason why they cannot be identified. */
export type Redacted = { readonly text: string } | { readonly withheld: string };

/**
 * Tokens of PostgreSQL's lexer, as far as needed here. The order matters: a prefix belongs to its string, and digits
 * within a name are not a number.
 */
const token =
  /(?<space>\s+|--[^\n]*)|(?<comment>\/\*)|(?<escape>[eE]'(?:[^'\\]|\\[\s\S]|'')*')|(?<string>(?:[bBxXnN]|[uU]&)?'(?:[^']|'')*')|(?<name>[uU]&"(?:[^"]|"")*"|"(?:[^"]|"")*"|[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*)|(?<parameter>\$\d+)|(?<dollar>\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$)|(?<number>(?:\d[\w.]*|\.\d\w*))|(?<other>[\s\S])/uy;

/**
 * Replaces each string by a parameter and each comment by a space. Numbers remain, since types and lengths are numbers
 * too: the caller parses the result and replaces numbers that are values. The meaning of a backslash in a plain string
 * depends on a setting of the session (`standard_conforming_strings`), so such a query is withheld.
 */
export function redactStrings(sql: string): Redacted {
  let text = "";
  let next = nextParameter(sql);
  let at = 0;
  const placeholder = () => {
    const name = `$${next}`;
    next += 1;
    return name;
  };
  while (at < sql.length) {
    token.lastIndex = at;
    const found = token.exec(sql);
    const groups = found?.groups;
    if (found === null || groups === undefined) return { withheld: "it cannot be read" };
    at = token.lastIndex;
    const { space, comment, escape, string, dollar, other } = groups;
    if (space !== undefined) text += space.startsWith("--") ? " " : space;
    else if (comment !== undefined) {
      const end = endOfComment(sql, at);
      if (end === undefined) return { withheld: "a comment in it is not closed" };
      at = end;
      text += " ";
    } else if (escape !== undefined) text += placeholder();
    else if (string !== undefined) {
      if (string.includes("\\")) return { withheld: "a string in it can be read in two ways" };
      text += placeholder();
    } else if (dollar !== undefined) {
      const end = sql.indexOf(dollar, at);
      if (end < 0) return { withheld: "a string in it is not closed" };
      at = end + dollar.length;
      text += placeholder();
    } else {
      // The rest of a string or name without an end.
      if (other === "'" || other === '"') return { withheld: "a string in it is not closed" };
      text += found[0];
    }
  }
  return { text };
}

/** End of a block comment, which may be nested; undefined if it has none. */
function endOfComment(sql: string, from: number): number | undefined {
  const delimiter = /\/\*|\*\//g;
  delimiter.lastIndex = from;
  for (let depth = 1; ; ) {
    const found = delimiter.exec(sql);
    if (found === null) return undefined;
    depth += found[0] === "/*" ? 1 : -1;
    if (depth === 0) return delimiter.lastIndex;
  }
}

/** Number after the highest parameter number in the query. */
function nextParameter(sql: string): number {
  let highest = 0;
  for (const [, digits] of sql.matchAll(/\$(\d{1,6})/g)) highest = Math.max(highest, Number(digits));
  return highest + 1;
}
