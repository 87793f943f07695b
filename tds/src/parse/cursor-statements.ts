import type { CursorName, CursorStatement, FetchPosition } from "./ast.ts";
import { parseExpression } from "./expressions.ts";
import { parseQuery } from "./queries.ts";
import type { TokenStream } from "./token-stream.ts";
import { refuse } from "./features.ts";

/** Options after CURSOR. All cursors read a snapshot and stay open when their transaction commits. */
const options = [
  "LOCAL",
  "GLOBAL",
  "FORWARD_ONLY",
  "SCROLL",
  "STATIC",
  "KEYSET",
  "DYNAMIC",
  "FAST_FORWARD",
  "READ_ONLY",
  "SCROLL_LOCKS",
  "OPTIMISTIC",
  "TYPE_WARNING",
];

/** Parses `name [INSENSITIVE] [SCROLL] CURSOR ... FOR query` after DECLARE. */
export function parseDeclareCursor(stream: TokenStream): CursorStatement {
  const { line } = stream.current;
  const name = stream.identifier();
  const words: string[] = [];
  if (stream.accept("INSENSITIVE")) words.push("STATIC");
  if (stream.accept("SCROLL")) words.push("SCROLL");
  stream.expect("CURSOR");
  for (let word = options.find((each) => stream.accept(each)); word !== undefined; ) {
    words.push(word);
    word = options.find((each) => stream.accept(each));
  }
  stream.expect("FOR");
  const query = parseQuery(stream);
  if (stream.accept("FOR")) {
    if (stream.is("UPDATE")) throw refuse("cursors for update", line);
    stream.expect("READ");
    if (stream.next().keyword !== "ONLY") throw stream.unexpected();
  }
  const scope = words.find((word) => word === "GLOBAL" || word === "LOCAL");
  return { kind: "declareCursor", name, isGlobal: scope === undefined ? undefined : scope === "GLOBAL", query };
}

export function parseCursorStatement(stream: TokenStream): CursorStatement {
  if (stream.accept("OPEN")) return { kind: "openCursor", cursor: cursorName(stream) };
  if (stream.accept("CLOSE")) return { kind: "closeCursor", cursor: cursorName(stream) };
  if (stream.accept("DEALLOCATE")) return { kind: "deallocateCursor", cursor: cursorName(stream) };
  stream.expect("FETCH");
  const position = fetchPosition(stream);
  stream.accept("FROM");
  const cursor = cursorName(stream);
  return { kind: "fetch", cursor, position, into: stream.accept("INTO") ? stream.list(() => stream.variable()) : [] };
}

function cursorName(stream: TokenStream): CursorName {
  const { kind, line } = stream.current;
  if (kind === "variable") throw refuse("cursor variables", line);
  const isGlobal = stream.accept("GLOBAL");
  return { name: stream.identifier(), isGlobal };
}

function fetchPosition(stream: TokenStream): FetchPosition {
  for (const direction of ["NEXT", "PRIOR", "FIRST", "LAST"] as const) {
    // Without FROM the word is the name of the cursor.
    if (stream.is(direction, "FROM") && stream.accept(direction)) return { direction };
  }
  for (const direction of ["ABSOLUTE", "RELATIVE"] as const) {
    if (stream.accept(direction)) return { direction, offset: parseExpression(stream) };
  }
  return { direction: "NEXT" };
}
