import type { Execute, ExecuteStatement, Expression, Parameter } from "./ast.ts";
import { parseDataType } from "./data-type.ts";
import { parseExpression } from "./expressions.ts";
import { tokenize } from "./lexer.ts";
import { parseQuery } from "./queries.ts";
import { TokenStream } from "./token-stream.ts";

export function parseExecute(stream: TokenStream): ExecuteStatement {
  stream.next();
  if (stream.is("(")) {
    const text = stream.parenthesized(() => parseExpression(stream));
    return { kind: "executeText", text };
  }
  return { kind: "execute", call: parseCallOf(stream) };
}

export function parseCallOf(stream: TokenStream): Execute {
  let resultVariable: string | undefined;
  if (stream.current.kind === "variable" && stream.peek(1).text === "=") {
    resultVariable = stream.variable();
    stream.next();
  }
  const path = stream.path();
  const list: Execute["arguments"][number][] = [];
  if (startsArgument(stream)) {
    list.push(
      ...stream.list(() => {
        let name: string | undefined;
        if (stream.current.kind === "variable" && stream.peek(1).text === "=") {
          name = stream.variable();
          stream.next();
        }
        const value = parseArgument(stream);
        const isOutput = stream.accept("OUTPUT") || stream.accept("OUT");
        return { name, value, isOutput };
      }),
    );
  }
  return { path, resultVariable, arguments: list };
}

function startsArgument(stream: TokenStream): boolean {
  const { kind } = stream.current;
  // A word that is not reserved is a text, unless it begins the next statement.
  if (kind === "word")
    return (
      stream.is("NULL") || stream.is("DEFAULT") || (stream.isIdentifier && !stream.is("THROW") && !stream.is("GO"))
    );
  return kind === "symbol" ? stream.is("-") || stream.is("+") : kind !== "end";
}

/** Argument of EXECUTE: a constant, a variable, or a word that counts as a string. */
function parseArgument(stream: TokenStream): Expression {
  const { kind, text } = stream.current;
  if (kind === "quoted" || (stream.isIdentifier && stream.peek(1).text !== "("))
    return { kind: "literal", type: { name: "nvarchar", length: Math.max(1, text.length) }, value: stream.next().text };
  return parseExpression(stream, 4);
}

/** Parses the name of a procedure in an RPC message, such as `dbo.[Add order];1`. */
export function parsePath(name: string): string[] {
  const stream = new TokenStream(tokenize(name.replace(/;\d+$/, "")), parseQuery);
  const path = stream.path();
  if (!stream.isAtEnd) throw stream.unexpected();
  return path;
}

/** Parses the parameter declaration of sp_executesql, such as `@a int, @b nvarchar(10) OUTPUT`. */
export function parseParameters(declaration: string): Parameter[] {
  const stream = new TokenStream(tokenize(declaration), parseQuery);
  if (stream.isAtEnd) return [];
  const parameters = stream.list(() => parseParameter(stream));
  if (!stream.isAtEnd) throw stream.unexpected();
  return parameters;
}

export function parseParameter(stream: TokenStream): Parameter {
  const name = stream.variable();
  stream.accept("AS");
  const type = parseDataType(stream);
  stream.accept("NULL");
  const value = stream.accept("=") ? parseArgument(stream) : undefined;
  const isOutput = stream.accept("OUTPUT") || stream.accept("OUT");
  const isReadOnly = stream.accept("READONLY");
  return { name, type, default: value, isOutput, isReadOnly };
}
