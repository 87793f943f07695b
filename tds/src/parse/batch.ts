import { lookUp } from "@holdfast/common/look-up.ts";
import type { CommonTable, Expression, ModuleDefinition, Statement, StatementBody } from "./ast.ts";
import { parseCursorStatement, parseDeclareCursor } from "./cursor-statements.ts";
import { parseDataType } from "./data-type.ts";
import { parseCreateDatabase, parseDropDatabase } from "./database-statements.ts";
import { parseAlter, parseCreate, parseDrop, parseTableElements, parseTruncate } from "./ddl-statements.ts";
import { parseDelete, parseInsert, parseMerge, parseUpdate } from "./dml-statements.ts";
import { parseCallOf, parseExecute } from "./execute-statements.ts";
import { parseExpression, parsePredicate } from "./expressions.ts";
import { parseGrant } from "./grant-statements.ts";
import { tokenize } from "./lexer.ts";
import { parseModule } from "./modules.ts";
import { parseQuery, parseWith } from "./queries.ts";
import { SqlError } from "../run/sql-error.ts";
import { TokenStream } from "./token-stream.ts";
import { refuse, type RefusedFeature } from "./features.ts";

/** Parses a batch to its statements; throws a SqlError (102, 156 and others) with the line of a syntax error. */
export function parseBatch(text: string, quotedIdentifier = true): Statement[] {
  const stream = new TokenStream(tokenize(text, quotedIdentifier), parseQuery);
  skipSemicolons(stream);
  const { line } = stream.current;
  const definition = parseModule(stream, parseToEnd);
  if (definition?.kind === "procedure") {
    const { path, replaces } = definition;
    return [{ line, body: { kind: "createProcedure", path, replaces, text } }];
  }
  if (definition !== undefined) return [{ line, body: { kind: "createModule", definition, text } }];
  const statements: Statement[] = [];
  // The first statement may be a call without EXECUTE.
  if (stream.isIdentifier && !startsStatement(stream)) {
    statements.push({ line, body: { kind: "execute", call: parseCallOf(stream) } });
  }
  return [...statements, ...parseToEnd(stream)];
}

/**
 * Parses a batch for an assessment: each error is passed to `onFault`, and the parser continues with the next
 * statement. Never throws for a batch of tokens; an unclosed quote or comment is an error of the batch.
 */
export function assessBatch(
  text: string,
  onFault: (error: SqlError) => void,
): { readonly statements: readonly Statement[]; readonly definition?: ModuleDefinition; readonly line: number } {
  const stream = new TokenStream(tokenize(text), parseQuery);
  stream.onFault = onFault;
  skipSemicolons(stream);
  const { line } = stream.current;
  if (stream.isIdentifier && !startsStatement(stream)) {
    const call = recovered(stream, (): StatementBody => ({ kind: "execute", call: parseCallOf(stream) }));
    return { statements: [{ line, body: call ?? skipped }, ...parseToEnd(stream)], line };
  }
  const definition = recovered(stream, () => parseModule(stream, parseToEnd));
  // After an error in the head of a module, the statements of its body.
  const statements = parseToEnd(stream);
  return definition === undefined ? { statements, line } : { statements, definition, line };
}

/** Statement in the place of one with an error. */
const skipped: StatementBody = { kind: "block", statements: [] };

/** The parsed part; undefined after an error that `onFault` accepts: then the tokens of its statement are skipped. */
function recovered<T>(stream: TokenStream, parse: () => T): T | undefined {
  const { position } = stream;
  try {
    return parse();
  } catch (error) {
    if (stream.onFault === undefined || !(error instanceof SqlError)) throw error;
    stream.onFault(error);
    if (stream.position === position) stream.next();
    skipStatement(stream);
    return undefined;
  }
}

/** Words before which a keyword at the start of a line continues a statement. */
const continuing = ["ALL", "EXCEPT", "FOR", "INTERSECT", "ON", "OR", "THEN", "UNION"];

/** Skips to the next statement: one after a semicolon, or one that begins a line outside of parentheses. */
function skipStatement(stream: TokenStream): void {
  let depth = 0;
  for (; !stream.isAtEnd; stream.next()) {
    const { kind, keyword, line } = stream.current;
    const last = stream.peek(-1);
    if (kind === "symbol" && keyword === "(") depth += 1;
    else if (kind === "symbol" && keyword === ")") depth = Math.max(0, depth - 1);
    else if (kind === "symbol" && keyword === ";" && depth === 0) break;
    if (kind !== "word" || depth > 0) continue;
    if (keyword === "END" || keyword === "ELSE") break;
    const begins = keyword !== "WITH" && (lookUp(parsers, keyword) ?? lookUp(refusedStatements, keyword)) !== undefined;
    if (begins && line > last.line && !continuing.includes(last.keyword)) break;
  }
  skipSemicolons(stream);
}

function parseToEnd(stream: TokenStream): Statement[] {
  const statements: Statement[] = [];
  skipSemicolons(stream);
  while (!stream.isAtEnd) {
    // Ends of blocks whose head had an error.
    if (stream.onFault !== undefined && (stream.accept("END") || stream.accept("ELSE"))) skipSemicolons(stream);
    else statements.push(parseStatement(stream));
  }
  return statements;
}

/** Parses the text of CREATE or ALTER of a module, as it was stored. */
export function parseModuleText(text: string): ModuleDefinition {
  const stream = new TokenStream(tokenize(text), parseQuery);
  skipSemicolons(stream);
  const definition = parseModule(stream, parseToEnd);
  if (definition === undefined) throw stream.unexpected();
  return definition;
}

/** First words of statements that are not reserved words. */
function startsStatement(stream: TokenStream): boolean {
  return stream.current.kind === "word" && stream.current.keyword === "THROW";
}

/** True if the expression of a RETURN follows, rather than the next statement. */
function startsValue(stream: TokenStream): boolean {
  const { kind, keyword } = stream.current;
  if (kind === "word") return lookUp(parsers, keyword) === undefined && keyword !== "END" && keyword !== "ELSE";
  return kind === "symbol" ? ["(", "-", "+", "~"].includes(keyword) : kind !== "end";
}

function skipSemicolons(stream: TokenStream): void {
  while (stream.accept(";"));
}

function parseStatement(stream: TokenStream): Statement {
  return stream.nested(() => {
    const { line } = stream.current;
    const body = recovered(stream, () => parseBody(stream)) ?? skipped;
    skipSemicolons(stream);
    return { body, line };
  });
}

type Parser = (stream: TokenStream) => StatementBody;

/** Parsers by the first word of a statement. */
const parsers: Readonly<Record<string, Parser>> = {
  SELECT: (stream) => parseQuery(stream),
  WITH: parseWithStatement,
  INSERT: (stream) => parseInsert(stream, []),
  UPDATE: (stream) => parseUpdate(stream, []),
  DELETE: (stream) => parseDelete(stream, []),
  MERGE: (stream) => parseMerge(stream, []),
  CREATE: (stream) => parseCreateDatabase(stream) ?? parseCreate(stream),
  ALTER: parseAlter,
  DROP: (stream) => parseDropDatabase(stream) ?? parseDrop(stream),
  TRUNCATE: parseTruncate,
  GRANT: parseGrant,
  REVOKE: parseGrant,
  DECLARE: parseDeclare,
  SET: parseSet,
  IF: parseIf,
  WHILE(stream) {
    stream.expect("WHILE");
    return { kind: "while", condition: parsePredicate(stream), body: parseStatement(stream) };
  },
  BEGIN: parseBegin,
  COMMIT: (stream) => parseTransactionEnd(stream, "commit"),
  ROLLBACK: (stream) => parseTransactionEnd(stream, "rollback"),
  SAVE(stream) {
    stream.expect("SAVE");
    if (!stream.accept("TRAN")) stream.expect("TRANSACTION");
    return { kind: "save", name: parseTransactionName(stream) };
  },
  BREAK: (stream) => single(stream, { kind: "break" }),
  CONTINUE: (stream) => single(stream, { kind: "continue" }),
  RETURN(stream) {
    stream.expect("RETURN");
    return { kind: "return", expression: startsValue(stream) ? parseExpression(stream) : undefined };
  },
  PRINT(stream) {
    stream.expect("PRINT");
    return { kind: "print", expression: parseExpression(stream) };
  },
  RAISERROR: parseRaiserror,
  THROW(stream) {
    stream.expect("THROW");
    const isBare = stream.isAtEnd || stream.current.kind === "word" || stream.is(";");
    return { kind: "throw", arguments: isBare ? [] : stream.list(() => parseExpression(stream)) };
  },
  USE(stream) {
    stream.expect("USE");
    return { kind: "use", database: stream.identifier() };
  },
  WAITFOR(stream) {
    stream.expect("WAITFOR", "DELAY");
    return { kind: "waitfor", delay: parseExpression(stream) };
  },
  EXEC: parseExecute,
  EXECUTE: parseExecute,
  OPEN: parseCursorStatement,
  FETCH: parseCursorStatement,
  CLOSE: parseCursorStatement,
  DEALLOCATE: parseCursorStatement,
};

function parseBody(stream: TokenStream): StatementBody {
  const { kind, keyword, line } = stream.current;
  if (kind === "symbol" && keyword === "(") return parseQuery(stream);
  const parser = kind === "word" ? lookUp(parsers, keyword) : undefined;
  if (parser !== undefined) return parser(stream);
  const refused = kind === "word" ? lookUp(refusedStatements, keyword) : undefined;
  if (refused !== undefined) throw refuse(refused, line, refused === keyword ? undefined : keyword);
  throw stream.unexpected();
}

/** Features by the first keywords of statements that are refused with error 40510. */
const refusedStatements: Readonly<Record<string, RefusedFeature>> = {
  BACKUP: "BACKUP and RESTORE",
  BULK: "BULK INSERT",
  CHECKPOINT: "server control",
  DBCC: "DBCC",
  DENY: "DENY",
  DISABLE: "other statements",
  ENABLE: "other statements",
  GOTO: "GOTO",
  KILL: "server control",
  RECONFIGURE: "server control",
  RESTORE: "BACKUP and RESTORE",
  REVERT: "other statements",
  SHUTDOWN: "server control",
};

function single(stream: TokenStream, body: StatementBody): StatementBody {
  stream.next();
  return body;
}

function parseWithStatement(stream: TokenStream): StatementBody {
  const common: readonly CommonTable[] = parseWith(stream);
  if (stream.is("INSERT")) return parseInsert(stream, common);
  if (stream.is("UPDATE")) return parseUpdate(stream, common);
  if (stream.is("DELETE")) return parseDelete(stream, common);
  if (stream.is("MERGE")) return parseMerge(stream, common);
  return parseQuery(stream, common);
}

function parseDeclare(stream: TokenStream): StatementBody {
  stream.expect("DECLARE");
  const { line } = stream.current;
  if (stream.current.kind !== "variable") return parseDeclareCursor(stream);
  if (stream.peek(1).keyword === "CURSOR") throw refuse("cursor variables", line);
  const first = stream.peek(1).keyword === "AS" ? stream.peek(2) : stream.peek(1);
  if (first.kind === "word" && first.keyword === "TABLE") {
    const name = stream.variable();
    stream.accept("AS");
    stream.expect("TABLE");
    return { kind: "declareTable", name, ...stream.parenthesized(() => parseTableElements(stream)) };
  }
  const variables = stream.list(() => {
    const name = stream.variable();
    stream.accept("AS");
    const type = parseDataType(stream);
    return { name, type, value: stream.accept("=") ? parseExpression(stream) : undefined };
  });
  return { kind: "declare", variables };
}

function parseSet(stream: TokenStream): StatementBody {
  stream.expect("SET");
  if (stream.current.kind === "variable") {
    const name = stream.variable();
    const { kind, text } = stream.next();
    if (kind !== "symbol" || !text.endsWith("=") || text.length > 2) throw stream.unexpected();
    const right = parseExpression(stream);
    const operator = text.slice(0, -1);
    const left: Expression = { kind: "variable", name };
    return { kind: "set", name, expression: operator === "" ? right : { kind: "binary", operator, left, right } };
  }
  if (stream.accept("TRANSACTION", "ISOLATION", "LEVEL")) {
    const words = [stream.next().keyword];
    if (["READ", "REPEATABLE"].includes(words[0] ?? "")) words.push(stream.next().keyword);
    return { kind: "isolation", level: words.join(" ").toLowerCase() };
  }
  if (stream.accept("IDENTITY_INSERT")) {
    const path = stream.path();
    return { kind: "identityInsert", path, isOn: parseSwitch(stream) === "ON" };
  }
  if (stream.accept("STATISTICS")) {
    const options = stream.list(() => `STATISTICS ${stream.next().keyword}`);
    return { kind: "setOption", options, value: parseSwitch(stream) };
  }
  const options = stream.list(() => {
    if (stream.current.kind !== "word") throw stream.unexpected();
    return stream.next().keyword;
  });
  const sign = stream.accept("-") ? "-" : "";
  const { kind, text, keyword } = stream.next();
  if (kind === "end") throw stream.unexpected();
  return { kind: "setOption", options, value: sign + (kind === "word" ? keyword : text) };
}

function parseSwitch(stream: TokenStream): "ON" | "OFF" {
  if (stream.accept("ON")) return "ON";
  stream.expect("OFF");
  return "OFF";
}

function parseIf(stream: TokenStream): StatementBody {
  stream.expect("IF");
  const condition = parsePredicate(stream);
  const consequent = parseStatement(stream);
  return { kind: "if", condition, consequent, otherwise: stream.accept("ELSE") ? parseStatement(stream) : undefined };
}

function parseBegin(stream: TokenStream): StatementBody {
  const { line } = stream.current;
  stream.expect("BEGIN");
  if (stream.is("DISTRIBUTED")) throw refuse("distributed transactions", line);
  if (stream.accept("TRAN") || stream.accept("TRANSACTION"))
    return { kind: "begin", name: parseTransactionName(stream) };
  if (stream.accept("TRY")) {
    const body = parseUntilEnd(stream, "TRY");
    skipSemicolons(stream);
    stream.expect("BEGIN", "CATCH");
    return { kind: "try", body, handler: parseUntilEnd(stream, "CATCH") };
  }
  return { kind: "block", statements: parseUntilEnd(stream) };
}

function parseUntilEnd(stream: TokenStream, ...words: readonly string[]): Statement[] {
  const statements: Statement[] = [];
  skipSemicolons(stream);
  while (!stream.accept("END", ...words)) {
    if (stream.isAtEnd) throw stream.unexpected();
    statements.push(parseStatement(stream));
  }
  return statements;
}

function parseTransactionEnd(stream: TokenStream, kind: "commit" | "rollback"): StatementBody {
  stream.next();
  if (stream.accept("WORK")) return { kind, name: undefined };
  const hasWord = stream.accept("TRAN") || stream.accept("TRANSACTION");
  return { kind, name: hasWord ? parseTransactionName(stream) : undefined };
}

function parseTransactionName(stream: TokenStream): string | undefined {
  if (stream.current.kind === "variable") return stream.variable();
  if (!stream.isIdentifier || startsStatement(stream)) return undefined;
  return stream.identifier();
}

function parseRaiserror(stream: TokenStream): StatementBody {
  stream.expect("RAISERROR");
  const list = stream.parenthesized(() => stream.list(() => parseExpression(stream)));
  const options = stream.accept("WITH") ? stream.list(() => stream.identifier().toUpperCase()) : [];
  return { kind: "raiserror", arguments: list, options };
}
