import type {
  FunctionDefinition,
  ModuleDefinition,
  ProcedureDefinition,
  Statement,
  TriggerDefinition,
  TriggerEvent,
} from "./ast.ts";
import { parseDataType } from "./data-type.ts";
import { parseTableElements } from "./ddl-statements.ts";
import { parseParameter } from "./execute-statements.ts";
import { parseQuery } from "./queries.ts";
import type { TokenStream } from "./token-stream.ts";
import { refuse } from "./features.ts";

/** First words of the definitions of modules. */
const heads = [
  { words: ["CREATE", "OR", "ALTER"], replaces: "any" },
  { words: ["CREATE"], replaces: "none" },
  { words: ["ALTER"], replaces: "required" },
] as const;

type ParseStatements = (stream: TokenStream) => Statement[];
type Replaces = ProcedureDefinition["replaces"];

/**
 * Parses the definition of a procedure, function or trigger, which extends to the end of its batch; undefined for
 * another statement.
 */
export function parseModule(stream: TokenStream, statements: ParseStatements): ModuleDefinition | undefined {
  for (const { words, replaces } of heads) {
    if (stream.accept(...words, "PROCEDURE") || stream.accept(...words, "PROC"))
      return parseProcedure(stream, replaces, statements);
    if (stream.accept(...words, "FUNCTION")) return parseFunction(stream, replaces, statements);
    if (stream.accept(...words, "TRIGGER")) return parseTrigger(stream, replaces, statements);
  }
  return undefined;
}

function parseProcedure(stream: TokenStream, replaces: Replaces, statements: ParseStatements): ProcedureDefinition {
  const path = stream.path();
  const isParenthesized = stream.accept("(");
  const parameters = stream.current.kind === "variable" ? stream.list(() => parseParameter(stream)) : [];
  if (isParenthesized) stream.expect(")");
  const { line } = stream.current;
  if (stream.accept("WITH")) {
    stream.list(() => {
      if (!stream.accept("RECOMPILE") && !acceptCaller(stream))
        throw refuse("options of modules", line, `WITH ${stream.current.text}`);
    });
  }
  stream.expect("AS");
  return { kind: "procedure", path, replaces, parameters, statements: statements(stream) };
}

function parseFunction(stream: TokenStream, replaces: Replaces, statements: ParseStatements): FunctionDefinition {
  const path = stream.path();
  stream.expect("(");
  const parameters = stream.current.kind === "variable" ? stream.list(() => parseParameter(stream)) : [];
  stream.expect(")");
  stream.expect("RETURNS");
  const begin = { kind: "function", path, replaces, parameters } as const;
  if (stream.current.kind === "variable") {
    const name = stream.variable();
    stream.expect("TABLE");
    const elements = stream.parenthesized(() => parseTableElements(stream));
    skipOptions(stream);
    return { ...begin, returns: { kind: "table", name, ...elements }, statements: statements(stream) };
  }
  if (stream.accept("TABLE")) {
    skipOptions(stream);
    stream.expect("RETURN");
    const query = parseQuery(stream);
    stream.accept(";");
    if (!stream.isAtEnd) throw stream.unexpected();
    return { ...begin, returns: { kind: "query", query }, statements: [] };
  }
  const type = parseDataType(stream);
  skipOptions(stream);
  return { ...begin, returns: { kind: "scalar", type }, statements: statements(stream) };
}

/** Options that change nothing here are accepted: errors name the others. */
function skipOptions(stream: TokenStream): void {
  const { line } = stream.current;
  if (stream.accept("WITH")) {
    stream.list(() => {
      if (acceptCaller(stream)) return;
      if (stream.accept("SCHEMABINDING") || stream.accept("CALLED", "ON", "NULL", "INPUT")) return;
      if (stream.accept("INLINE", "=")) stream.next();
      else throw refuse("options of modules", line, `WITH ${stream.current.text}`);
    });
  }
  stream.accept("AS");
}

/** `EXECUTE AS CALLER`: the statements of a module always run with the privileges of the caller. */
function acceptCaller(stream: TokenStream): boolean {
  return stream.accept("EXECUTE", "AS", "CALLER") || stream.accept("EXEC", "AS", "CALLER");
}

const events = ["INSERT", "UPDATE", "DELETE"] as const;

function parseTrigger(stream: TokenStream, replaces: Replaces, statements: ParseStatements): TriggerDefinition {
  const path = stream.path();
  const { line } = stream.current;
  stream.expect("ON");
  if (stream.is("DATABASE") || stream.is("ALL", "SERVER")) throw refuse("triggers of DDL and sign-in", line);
  const table = stream.path();
  if (stream.accept("WITH") && !acceptCaller(stream))
    throw refuse("options of modules", line, `WITH ${stream.current.text}`);
  const isInsteadOf = stream.accept("INSTEAD", "OF");
  if (!isInsteadOf && !stream.accept("FOR")) stream.expect("AFTER");
  const list = stream.list((): TriggerEvent => {
    const event = events.find((each) => stream.accept(each));
    if (event === undefined) throw stream.unexpected();
    return event;
  });
  stream.accept("NOT", "FOR", "REPLICATION");
  stream.expect("AS");
  return {
    kind: "trigger",
    path,
    replaces,
    table,
    isInsteadOf,
    events: [...new Set(list)],
    statements: statements(stream),
  };
}
