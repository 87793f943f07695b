import type { StatementVerdict } from "../statement-verdict.ts";
import { beforeParenthesis, readingFunctions, refusedWords, sizedTypes } from "./grammar.ts";
import { Refused, sqlOf, type SqlToken, tokensOf } from "./tokens.ts";

const parenthesesMax = 100;
const tokensMax = 20_000;
const namesMax = 1_000;
const auditTextMax = 1_000;

/**
 * Decides whether a statement may run, without side effects. It accepts SELECT, and forms of SHOW, DESCRIBE and
 * EXPLAIN, which it prints itself. A SELECT is checked as a list of tokens. It can write only by INTO, lock only by FOR
 * UPDATE or FOR SHARE, and run code only by a function's name before an opening parenthesis: so the guard refuses these
 * words, and functions that are not in `readingFunctions`. The engine runs the text of the checked tokens, without
 * comments.
 */
export function checkStatement(sql: string): StatementVerdict {
  try {
    const tokens = tokensOf(sql);
    if (tokens.length > tokensMax) throw new Refused(`The statement has more than ${tokensMax} parts.`);
    return verdictOf(tokens);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { refused: error.message, position: error.at < 0 ? 0 : Array.from(sql.slice(0, error.at)).length + 1 };
  }
}

/**
 * The word with ASCII letters in lower case. Other letters are unchanged, since some would become ASCII (U+212A: k).
 */
const wordOf = (token: SqlToken | undefined): string =>
  token?.kind === "word" ? token.text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase()) : "";
const isSymbol = (token: SqlToken | undefined, text: string): boolean =>
  token?.kind === "symbol" && token.text === text;

function verdictOf(tokens: readonly SqlToken[]): StatementVerdict {
  const first = tokens.find((token) => !isSymbol(token, "("));
  switch (wordOf(first)) {
    case "select":
    case "with":
    case "values":
    case "table":
      return accepted(checkSelect(tokens), tokens);
    case "explain":
      return accepted(checkExplain(tokens), tokens);
    case "desc":
    case "describe":
      return accepted(describeSql(tokens), tokens);
    case "show":
      return accepted(showSql(tokens), tokens);
    default:
      throw new Refused(
        `${first?.text ?? "An empty statement"} is not allowed: the console runs only SELECT, SHOW, EXPLAIN and DESCRIBE, and only if they read.`,
        first?.start,
      );
  }
}

function accepted(sql: string, tokens: readonly SqlToken[]): StatementVerdict {
  return {
    sql,
    functions: [],
    types: [],
    qualified: [],
    relations: namesIn(tokens),
    auditText: auditTextOf(tokens),
    positions: new Map(),
    named: new Map(),
  };
}

/** The names in the statement, quoted and with their qualifiers. Any of them may be the name of a view. */
function namesIn(tokens: readonly SqlToken[]): string[] {
  const names = new Set<string>();
  const isName = (token: SqlToken | undefined) => token?.kind === "word" || token?.kind === "quoted";
  for (const [index, token] of tokens.entries()) {
    if (!isName(token)) continue;
    const before = tokens[index - 2];
    const isQualified = isSymbol(tokens[index - 1], ".") && isName(before);
    names.add(`${isQualified && before !== undefined ? `${quoted(before)}.` : ""}${quoted(token)}`);
  }
  if (names.size > namesMax) throw new Refused(`The statement has more than ${namesMax} names.`);
  return [...names];
}

const quoted = ({ kind, text }: SqlToken): string => (kind === "quoted" ? text : `\`${text}\``);

function auditTextOf(tokens: readonly SqlToken[]): string {
  const isConstant = ({ kind, text }: SqlToken) => kind === "string" || (kind === "word" && /^\d/.test(text));
  return sqlOf(tokens, (token) => (isConstant(token) ? "?" : token.text)).slice(0, auditTextMax);
}

/** Throws Refused unless the tokens only read. */
function checkSelect(tokens: readonly SqlToken[]): string {
  let depth = 0;
  for (const [index, token] of tokens.entries()) {
    const before = tokens[index - 1];
    const next = tokens[index + 1];
    if (isSymbol(token, ")")) depth -= 1;
    if (isSymbol(token, "(")) {
      depth += 1;
      if (depth > parenthesesMax)
        throw new Refused(`Parentheses are nested more than ${parenthesesMax} deep.`, token.start);
      checkBeforeParenthesis(tokens, index);
    }
    if (isSymbol(token, ":") && isSymbol(next, "=")) throw new Refused("Variables are not allowed.", token.start);
    const word = isSymbol(before, ".") ? "" : wordOf(token);
    if (refusedWords.has(word)) throw new Refused(`${token.text} is not allowed: the console only reads.`, token.start);
    if (word === "for" && ["update", "share"].includes(wordOf(next)))
      throw new Refused(`FOR ${next?.text} is not allowed: the console only reads.`, token.start);
  }
  if (depth !== 0) throw new Refused("A parenthesis is not closed.");
  return sqlOf(tokens);
}

/** Throws Refused for a name before a parenthesis, unless it is a keyword or a function from the list. */
function checkBeforeParenthesis(tokens: readonly SqlToken[], index: number): void {
  const parenthesis = tokens[index];
  const name = tokens[index - 1];
  if (name === undefined || name.kind === "symbol" || name.kind === "string") return;
  const before = tokens[index - 2];
  const word = wordOf(name);
  const isQualified = isSymbol(before, ".");
  // The columns of a common table expression.
  if (["with", "recursive"].includes(wordOf(before)) && name.kind === "word" && !isQualified) return;
  if (!isQualified && beforeParenthesis.has(word)) return;
  if (!isQualified && isKeywordHere(tokens, index, word)) return;
  // With a space before the parenthesis, the name is the name of a user's function.
  const isAdjacent = parenthesis?.isSpaced !== true;
  if (!isQualified && isAdjacent && (readingFunctions.has(word) || sizedTypes.has(word))) return;
  const isSpaced = !isQualified && readingFunctions.has(word);
  const reason = isSpaced ? "has a space before its parenthesis" : "is not among those that only read";
  throw new Refused(`The function ${name.text} ${reason}.`, name.start);
}

/** True for a word that is a keyword between these tokens, and could be a function of users elsewhere. */
function isKeywordHere(tokens: readonly SqlToken[], index: number, word: string): boolean {
  const before = tokens[index - 2];
  const inside = wordOf(tokens[index + 1]);
  switch (word) {
    case "any":
    case "some":
      return before?.kind === "symbol" && /[=<>]/.test(before.text) && ["select", "with", "values"].includes(inside);
    case "datetime":
    case "nchar":
      return wordOf(before) === "as";
    case "against":
      return isSymbol(before, ")");
    case "columns":
      return before?.kind === "string";
    case "of":
      return wordOf(before) === "member";
    default:
      return false;
  }
}

function checkExplain(tokens: readonly SqlToken[]): string {
  const [, format, equals, name] = tokens;
  const hasFormat = wordOf(format) === "format" && isSymbol(equals, "=");
  const rest = tokens.slice(hasFormat ? 4 : 1);
  if (hasFormat && !["json", "tree", "traditional"].includes(wordOf(name)))
    throw new Refused("FORMAT is JSON, TREE or TRADITIONAL.", name?.start);
  const first = rest.find((token) => !isSymbol(token, "("));
  if (!["select", "with", "values", "table"].includes(wordOf(first)))
    throw new Refused("EXPLAIN is allowed of a SELECT, without ANALYZE.", first?.start);
  return `EXPLAIN ${hasFormat ? `FORMAT = ${wordOf(name).toUpperCase()} ` : ""}${checkSelect(rest).trimStart()}`;
}

/** Reads a name such as `orders` or `` `shop`.`orders` ``, and prints it in quotes. */
function takeName(rest: SqlToken[]): string {
  const names: string[] = [];
  do {
    if (names.length > 0) rest.shift();
    const token = rest.shift();
    if (token === undefined || (token.kind !== "word" && token.kind !== "quoted"))
      throw new Refused("A name is missing.", token?.start);
    names.push(quoted(token));
  } while (isSymbol(rest[0], ".") && names.length < 2);
  return names.join(".");
}

function takeWords(rest: SqlToken[], ...words: string[]): boolean {
  const isThere = words.every((word, index) => wordOf(rest[index]) === word);
  if (isThere) rest.splice(0, words.length);
  return isThere;
}

function requireEnd(rest: readonly SqlToken[]): void {
  if (rest[0] !== undefined) throw new Refused(`${rest[0].text} is not allowed here.`, rest[0].start);
}

function describeSql(tokens: readonly SqlToken[]): string {
  const rest = tokens.slice(1);
  const name = takeName(rest);
  requireEnd(rest);
  return `SHOW COLUMNS FROM ${name}`;
}

/** Forms of SHOW and their arguments: `of` is a name, `from` an optional database, `like` an optional pattern. */
const showForms: readonly { readonly words: readonly string[]; readonly takes: readonly ("of" | "from" | "like")[] }[] =
  [
    { words: ["tables"], takes: ["from", "like"] },
    { words: ["full", "tables"], takes: ["from", "like"] },
    { words: ["table", "status"], takes: ["from", "like"] },
    { words: ["databases"], takes: ["like"] },
    { words: ["schemas"], takes: ["like"] },
    { words: ["columns"], takes: ["of", "from", "like"] },
    { words: ["full", "columns"], takes: ["of", "from", "like"] },
    { words: ["index"], takes: ["of", "from"] },
    { words: ["create", "table"], takes: ["of"] },
    { words: ["create", "view"], takes: ["of"] },
    { words: ["variables"], takes: ["like"] },
    { words: ["status"], takes: ["like"] },
    { words: ["engines"], takes: [] },
    { words: ["collation"], takes: ["like"] },
  ];

function showSql(tokens: readonly SqlToken[]): string {
  const rest = tokens.slice(1);
  const form = showForms.find(({ words }) => takeWords(rest, ...words));
  if (form === undefined) throw new Refused("This form of SHOW is not allowed.", rest[0]?.start);
  const { words, takes } = form;
  const printed = ["SHOW", ...words.map((word) => word.toUpperCase())];
  if (takes.includes("of")) {
    const isCreate = words[0] === "create";
    if (!isCreate && !takeWords(rest, "from") && !takeWords(rest, "in"))
      throw new Refused("A table is missing.", rest[0]?.start);
    printed.push(isCreate ? takeName(rest) : `FROM ${takeName(rest)}`);
  }
  if (takes.includes("from") && (takeWords(rest, "from") || takeWords(rest, "in")))
    printed.push(`FROM ${takeName(rest)}`);
  if (takes.includes("like") && takeWords(rest, "like")) {
    const pattern = rest.shift();
    if (pattern?.kind !== "string") throw new Refused("LIKE takes a string.", pattern?.start);
    printed.push(`LIKE ${pattern.text}`);
  }
  requireEnd(rest);
  return printed.join(" ");
}
