import type { DatabaseStatement } from "./ast.ts";
import { refuse } from "./features.ts";
import type { TokenStream } from "./token-stream.ts";

/** Parses CREATE DATABASE; undefined if another statement follows. Its storage options have no effect. */
export function parseCreateDatabase(stream: TokenStream): DatabaseStatement | undefined {
  const { line } = stream.current;
  if (!stream.accept("CREATE", "DATABASE")) return undefined;
  const database = stream.identifier();
  for (;;) {
    if (stream.is("COLLATE")) throw refuse("collations of databases", line);
    if (stream.accept("CONTAINMENT", "=")) stream.identifier();
    else if (stream.accept("ON")) skipFiles(stream);
    else if (stream.accept("LOG", "ON")) skipFiles(stream);
    else if (stream.is("FOR") || stream.is("AS")) throw refuse("other statements", line, "CREATE DATABASE of files");
    else break;
  }
  return { kind: "createDatabase", database };
}

function skipFiles(stream: TokenStream): void {
  stream.accept("PRIMARY");
  stream.list(() => {
    if (!stream.is("(")) throw stream.unexpected();
    stream.skipParentheses();
  });
}

/** Parses DROP DATABASE; undefined if another statement follows. */
export function parseDropDatabase(stream: TokenStream): DatabaseStatement | undefined {
  if (!stream.accept("DROP", "DATABASE")) return undefined;
  const ifExists = stream.accept("IF", "EXISTS");
  return { kind: "dropDatabase", databases: stream.list(() => stream.identifier()), ifExists };
}
