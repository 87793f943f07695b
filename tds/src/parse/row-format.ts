import { lookUp } from "@holdfast/common/look-up.ts";
import type { QueryBody, RowFormat } from "./ast.ts";
import { SqlError } from "../run/sql-error.ts";
import { refuse } from "./features.ts";
import type { TokenStream } from "./token-stream.ts";

/** Parses FOR JSON or FOR XML after a query; undefined for another clause, of which nothing is read. */
export function parseRowFormat(stream: TokenStream, body: QueryBody): RowFormat | undefined {
  if (stream.is("FOR", "JSON")) return parseJson(stream, body);
  return stream.is("FOR", "XML") ? parseXml(stream, body) : undefined;
}

function parseJson(stream: TokenStream, body: QueryBody): RowFormat {
  const { line } = stream.current;
  stream.expect("FOR", "JSON");
  const isAuto = stream.accept("AUTO");
  if (!isAuto) stream.expect("PATH");
  else if (!hasTables(body)) {
    const message =
      "FOR JSON AUTO requires at least one table for generating JSON objects. Use FOR JSON PATH or add a FROM clause with a table name.";
    throw new SqlError(13_600, message, { line });
  }
  let format: RowFormat = { kind: "json", isAuto, root: undefined, includesNulls: false, hasArray: true };
  while (stream.accept(",")) {
    if (stream.accept("INCLUDE_NULL_VALUES")) format = { ...format, includesNulls: true };
    else if (stream.accept("WITHOUT_ARRAY_WRAPPER")) format = { ...format, hasArray: false };
    else format = { ...format, root: parseRoot(stream) };
  }
  return format;
}

/** AUTO names objects by the tables of one SELECT. */
function hasTables(body: QueryBody): boolean {
  return body.kind === "select" && body.from.length > 0;
}

function parseXml(stream: TokenStream, body: QueryBody): RowFormat {
  const { line } = stream.current;
  stream.expect("FOR", "XML");
  const mode = lookUp({ RAW: "raw", PATH: "path", AUTO: "auto" } as const, stream.current.keyword);
  if (mode === undefined) throw refuse("FOR XML EXPLICIT", line, stream.current.keyword);
  stream.next();
  const isAuto = mode === "auto";
  if (isAuto && !hasTables(body)) {
    const message =
      "FOR XML AUTO requires at least one table for generating XML tags. Use FOR XML RAW or add a FROM clause.";
    throw new SqlError(6_810, message, { line });
  }
  const element = !isAuto && stream.is("(") ? stream.parenthesized(() => parseString(stream)) : "row";
  const hasElements = mode === "path";
  let format: RowFormat = {
    kind: "xml",
    mode,
    isAuto,
    element,
    root: undefined,
    hasElements,
    hasNils: false,
    isTyped: false,
  };
  while (stream.accept(",")) {
    if (stream.accept("TYPE")) format = { ...format, isTyped: true };
    else if (stream.accept("ELEMENTS")) {
      const hasNils = stream.accept("XSINIL");
      if (!hasNils) stream.accept("ABSENT");
      format = { ...format, hasElements: true, hasNils };
    } else if (stream.accept("BINARY", "BASE64")) continue;
    else format = { ...format, root: parseRoot(stream) };
  }
  return format;
}

function parseRoot(stream: TokenStream): string {
  stream.expect("ROOT");
  return stream.is("(") ? stream.parenthesized(() => parseString(stream)) : "root";
}

function parseString(stream: TokenStream): string {
  if (stream.current.kind !== "string") throw stream.unexpected();
  return stream.next().text;
}
