/** A text without its literals, or the reason why they cannot be told apart. */
export type Redacted = { readonly text: string } | { readonly withheld: string };

/**
 * Tokens of PostgreSQL's lexer, as far as they matter here. The order counts: a prefix belongs to its string, and digits
 * inside of a name are no number.
 */
const token =
  /(?<space>\s+|--[^\n]*)|(?<comment>\/\*)|(?<escape>[eE]'(?:[^'\\]|\\[\s\S]|'')*')|(?<string>(?:[bBxXnN]|[uU]&)?'(?:[^']|'')*')|(?<name>[uU]&"(?:[^"]|"")*"|"(?:[^"]|"")*"|[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*)|(?<parameter>\$\d+)|(?<dollar>\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$)|(?<number>(?:\d[\w.]*|\.\d\w*))|(?<other>[\s\S])/uy;

/**
 * Puts a parameter in the place of each string, and a space in the place of each remark. Numbers stay: types and lengths are
 * numbers too, and whoever shows the text parses it and replaces those that are values. A plain string with a backslash means
 * one thing or another by a setting of the session that sent it, so nothing of such a text is shown.
 */
export function redactStrings(sql: string): Redacted {
  let text = "";
  let next = nextParameter(sql);
  let at = 0;
  const place = () => {
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
      if (end === undefined) return { withheld: "a remark in it has no end" };
      at = end;
      text += " ";
    } else if (escape !== undefined) text += place();
    else if (string !== undefined) {
      if (string.includes("\\")) return { withheld: "a string in it can be read in two ways" };
      text += place();
    } else if (dollar !== undefined) {
      const end = sql.indexOf(dollar, at);
      if (end < 0) return { withheld: "a string in it has no end" };
      at = end + dollar.length;
      text += place();
    } else {
      // What remains of a string or name that has no end.
      if (other === "'" || other === '"') return { withheld: "a string in it has no end" };
      text += found[0];
    }
  }
  return { text };
}

/** Remarks of this kind nest. Undefined when it has no end. */
function endOfComment(sql: string, from: number): number | undefined {
  const mark = /\/\*|\*\//g;
  mark.lastIndex = from;
  for (let depth = 1; ; ) {
    const found = mark.exec(sql);
    if (found === null) return undefined;
    depth += found[0] === "/*" ? 1 : -1;
    if (depth === 0) return mark.lastIndex;
  }
}

/** After all that the text has already, wherever they stand. */
function nextParameter(sql: string): number {
  let most = 0;
  for (const [, digits] of sql.matchAll(/\$(\d{1,6})/g)) most = Math.max(most, Number(digits));
  return most + 1;
}
