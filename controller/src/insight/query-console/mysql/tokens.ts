/** Part of a statement as MySQL's lexer divides it (manual, "Language Structure"), in its default mode. */
export interface SqlToken {
  /** `word`: a name, keyword or number without quotes; `quoted`: a name in backticks; `symbol`: one other character. */
  readonly kind: "word" | "quoted" | "string" | "symbol";
  readonly text: string;
  /** Index in the statement. */
  readonly start: number;
  /** True if white space or a comment precedes it. */
  readonly isSpaced: boolean;
}

/** A refusal at an index of the statement. */
export class Refused extends Error {
  readonly at: number;

  constructor(message: string, at = -1) {
    super(message);
    this.at = at;
  }
}

const parts = new RegExp(
  [
    String.raw`(?<space>[ \t\n\v\f\r]+)`,
    // MySQL executes comments with an exclamation mark, and reads comments with a plus sign as hints.
    String.raw`(?<code>/\*[!+])`,
    String.raw`(?<comment>/\*[\s\S]*?\*/|#[^\n]*|--(?=[\x00-\x20]|$)[^\n]*)`,
    String.raw`(?<string>'(?:[^'\\]|\\[\s\S]|'')*'|"(?:[^"\\]|\\[\s\S]|"")*")`,
    "(?<quoted>`(?:[^`]|``)+`)",
    String.raw`(?<word>[0-9A-Za-z$_\u0080-\uffff]+)`,
    String.raw`(?<symbol>[\s\S])`,
  ].join("|"),
  "g",
);

/** Splits a statement. Throws Refused for a semicolon, a variable, an executable comment or open quotes. */
export function tokensOf(sql: string): readonly SqlToken[] {
  const tokens: SqlToken[] = [];
  let isSpaced = false;
  for (const { 0: text, index: start, groups = {} } of sql.matchAll(parts)) {
    if (groups["code"] !== undefined) throw new Refused(`${text} begins an executable comment or a hint.`, start);
    if (groups["space"] !== undefined || groups["comment"] !== undefined) {
      isSpaced = true;
      continue;
    }
    if (groups["symbol"] !== undefined) refuseSymbol(sql, text, start);
    const kind = (["string", "quoted", "word"] as const).find((name) => groups[name] !== undefined) ?? "symbol";
    tokens.push({ kind, text, start, isSpaced: isSpaced && tokens.length > 0 });
    isSpaced = false;
  }
  return tokens;
}

function refuseSymbol(sql: string, text: string, start: number): void {
  if (text === ";")
    throw new Refused("A semicolon is not allowed outside of strings and names, not even at the end.", start);
  if (text === "@") throw new Refused("Variables are not allowed.", start);
  if (text === "?") throw new Refused("Parameters are not allowed.", start);
  if (text === "\0") throw new Refused("The statement has a NUL character.", start);
  if (["'", '"', "`"].includes(text)) throw new Refused("A quote is not closed.", start);
  if (sql.startsWith("/*", start)) throw new Refused("A comment is not closed.", start);
  // MySQL ends a comment that is not closed with the statement, and reads a single dash otherwise.
  if (text === "\\" || text === "{" || text === "}") throw new Refused(`${text} is not allowed.`, start);
}

/** Text of the tokens, with a space where the statement has white space or comments. */
export function sqlOf(tokens: readonly SqlToken[], replace: (token: SqlToken) => string = ({ text }) => text): string {
  return tokens.map((token) => (token.isSpaced ? " " : "") + replace(token)).join("");
}
