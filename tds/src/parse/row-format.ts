import { lookUp } from "@holdfast/common/look-up.ts";
import type { QueryBody, RowFormat } from "./ast.ts";
import { refuse } from "./features.ts";
import type { TokenStream } from "./token-stream.ts";

/** Parses FOR JSON or FOR XML after a query; undefined for another clause, of which nothing is read. */
export function parseRowFormat(stream: TokenStream, body: QueryBody): RowFormat | undefined {
  if (stream.is("FOR", "JSON")) return parseJson(stream, body);
  return stream.is("FOR", "XML") ? parseXml(stream) : undefined;
}

function parseJson(stream: TokenStream, body: QueryBody): RowFormat {
  const { line } = stream.current;
  stream.expect("FOR", "JSON");
  const isAuto = stream.accept("AUTO");
  if (!isAuto) stream.expect("PATH");
  const source = body.kind === "select" && body.from.length === 1 ? body.from[0] : undefined;
  if (isAuto && (source === undefined || source.kind === "join")) throw refuse("FOR JSON AUTO of a join", line);
  let format: RowFormat = { kind: "json", isNested: !isAuto, root: undefined, includesNulls: false, hasArray: true };
  while (stream.accept(",")) {
    if (stream.accept("INCLUDE_NULL_VALUES")) format = { ...format, includesNulls: true };
    else if (stream.accept("WITHOUT_ARRAY_WRAPPER")) format = { ...format, hasArray: false };
    else format = { ...format, root: parseRoot(stream) };
  }
  return format;
}

function parseXml(stream: TokenStream): RowFormat {
  const { line } = stream.current;
  stream.expect("FOR", "XML");
  const mode = lookUp({ RAW: "raw", PATH: "path" } as const, stream.current.keyword);
  if (mode === undefined) throw refuse("FOR XML AUTO and EXPLICIT", line, stream.current.keyword);
  stream.next();
  const element = stream.is("(") ? stream.parenthesized(() => parseString(stream)) : "row";
  let format: RowFormat = { kind: "xml", mode, element, root: undefined, hasElements: mode === "path", isTyped: false };
  while (stream.accept(",")) {
    if (stream.accept("TYPE")) format = { ...format, isTyped: true };
    else if (stream.accept("ELEMENTS")) {
      if (stream.is("XSINIL")) throw refuse("FOR XML AUTO and EXPLICIT", line, "XSINIL");
      stream.accept("ABSENT");
      format = { ...format, hasElements: true };
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
