import { SqlError } from "../run/sql-error.ts";

export type TokenKind = "word" | "quoted" | "variable" | "string" | "number" | "binary" | "money" | "symbol" | "end";

export interface Token {
  readonly kind: TokenKind;
  /** Text of the token in the client's spelling, without the delimiters of quoted identifiers and strings. */
  readonly text: string;
  /** Text in upper case for words; the unchanged text for other tokens. */
  readonly keyword: string;
  /** Line of the batch, from 1. */
  readonly line: number;
  readonly start: number;
  readonly end: number;
  /** True for a national string, N'...'. */
  readonly isNational: boolean;
}

const space = /[\s\u00a0\ufeff]/;
const wordStart = /[\p{L}_#]/u;
const wordPart = /[\p{L}\p{N}_@#$]/u;
const digit = /[0-9]/;
const symbols = ["<>", "<=", ">=", "!=", "!<", "!>", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "::", "||"];
const longSymbols = "<>!+-*/%&|^";
const tokensMax = 2_000_000;

/** Splits a batch into tokens. Its cost is linear in the length of the text. */
export function tokenize(text: string, quotedIdentifier = true): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  let line = 1;
  const fail = (message: string, number: number) => new SqlError(number, message, { severity: 15, line });
  const push = (kind: TokenKind, value: string, start: number, isNational = false) => {
    if (tokens.length >= tokensMax) throw fail("The batch has too many tokens.", 191);
    tokens.push({
      kind,
      text: value,
      keyword: kind === "word" ? value.toUpperCase() : value,
      line,
      start,
      end: at,
      isNational,
    });
  };
  /** Reads to a delimiter that is escaped by doubling. */
  const delimited = (delimiter: string): string => {
    const begin = at;
    at += 1;
    const parts: string[] = [];
    for (;;) {
      const end = text.indexOf(delimiter, at);
      if (end === -1) {
        const quoted = text.slice(begin + 1, begin + 65);
        throw fail(`Unclosed quotation mark after the character string '${quoted}'.`, 105);
      }
      parts.push(text.slice(at, end));
      at = end + 1;
      if (text[at] !== delimiter) return parts.join(delimiter);
      at += 1;
    }
  };
  const countLines = (from: number) => {
    for (let index = text.indexOf("\n", from); index !== -1 && index < at; index = text.indexOf("\n", index + 1))
      line += 1;
  };
  while (at < text.length) {
    const start = at;
    const character = text.charAt(at);
    if (character === "\n") {
      line += 1;
      at += 1;
    } else if (space.test(character)) at += 1;
    else if (text.startsWith("--", at)) {
      const end = text.indexOf("\n", at);
      at = end === -1 ? text.length : end;
    } else if (text.startsWith("/*", at)) {
      at = commentEnd(text, at, () => fail("Missing end comment mark '*/'.", 113));
      countLines(start);
    } else if (character === "'" || ((character === "N" || character === "n") && text[at + 1] === "'")) {
      const isNational = character !== "'";
      if (isNational) at += 1;
      push("string", delimited("'"), start, isNational);
      countLines(start);
    } else if (character === '"') {
      push(quotedIdentifier ? "quoted" : "string", delimited('"'), start);
      countLines(start);
    } else if (character === "[") {
      push("quoted", delimited("]"), start);
      countLines(start);
    } else if (character === "@") {
      at += 1;
      while (at < text.length && wordPart.test(text.charAt(at))) at += 1;
      push("variable", text.slice(start, at), start);
    } else if (character === "0" && (text[at + 1] === "x" || text[at + 1] === "X")) {
      at += 2;
      while (at < text.length && /[0-9a-fA-F]/.test(text.charAt(at))) at += 1;
      push("binary", text.slice(start + 2, at), start);
    } else if (digit.test(character) || (character === "." && digit.test(text.charAt(at + 1)))) {
      const match = /^(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d*)?/.exec(text.slice(at, at + 400));
      at += match?.[0].length ?? 1;
      push("number", text.slice(start, at), start);
    } else if (character === "$" && /[\d.]/.test(text.charAt(at + 1))) {
      const match = /^\$\d*\.?\d*/.exec(text.slice(at, at + 100));
      at += match?.[0].length ?? 1;
      push("money", text.slice(start + 1, at), start);
    } else if (wordStart.test(character) || character === "$") {
      at += 1;
      while (at < text.length && wordPart.test(text.charAt(at))) at += 1;
      push("word", text.slice(start, at), start);
    } else {
      const isLong = text.charAt(at + 1) !== character && longSymbols.includes(character);
      const pair = text.slice(at, at + 2);
      const symbol = (isLong || character === ":" || character === "|") && symbols.includes(pair) ? pair : character;
      at += symbol.length;
      push("symbol", symbol, start);
    }
  }
  push("end", "", at);
  return tokens;
}

/** Position after a comment that begins at `start`; comments nest. */
function commentEnd(text: string, start: number, unclosed: () => Error): number {
  const marks = /\/\*|\*\//g;
  marks.lastIndex = start;
  let depth = 0;
  for (let match = marks.exec(text); match !== null; match = marks.exec(text)) {
    depth += match[0] === "/*" ? 1 : -1;
    if (depth === 0) return marks.lastIndex;
  }
  throw unclosed();
}
