import { type JsonMember, type JsonNode, type JsonObject, nameOfKind } from "./json-node.ts";

/** The text is not JSON (RFC 8259); the message has line and column. */
export class JsonSyntaxError extends Error {
  override readonly name = "JsonSyntaxError";
}

const maxDepth = 64;
/** Maximum number of values in a text with raw values. */
export const maxValues = 500_000;
/** Maximum number of values in texts without raw values; each costs the event loop about a microsecond. */
export const inlineValues = 12_000;

const numberPattern = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const spacePattern = /[ \t\r\n]*/y;
// Characters without escapes.
// oxlint-disable-next-line no-control-regex -- control characters must be escaped
const plainPattern = /[^"\\\u0000-\u001f]*/y;
const escapes: ReadonlyMap<string, string> = new Map(
  Object.entries<string>({
    '"': '"',
    "\\": "\\",
    "/": "/",
    b: "\b",
    f: "\f",
    n: "\n",
    r: "\r",
    t: "\t",
  }),
);

/** Parses a JSON text. Throws JsonSyntaxError, also for nesting deeper than 64 and for more than `valuesMax` values. */
export function parseJson(text: string, valuesMax = maxValues): JsonNode {
  let at = 0;
  let values = 0;

  const fail = (what: string, position = at): JsonSyntaxError => {
    let line = 1;
    let start = 0;
    for (let end = text.indexOf("\n"); end >= 0 && end < position; end = text.indexOf("\n", start)) {
      line += 1;
      start = end + 1;
    }
    return new JsonSyntaxError(`${what} at line ${line}, column ${position - start + 1}`);
  };
  const match = (pattern: RegExp): string => {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0] ?? "";
    at += found.length;
    return found;
  };
  const space = () => match(spacePattern);
  const unexpected = () => fail(at < text.length ? `unexpected ${JSON.stringify(text[at])}` : "unexpected end");

  function value(depth: number): JsonNode {
    if (depth > maxDepth) throw fail(`nesting deeper than ${maxDepth}`);
    values += 1;
    if (values > valuesMax) throw fail(`more than ${valuesMax} values`);
    const first = text[at];
    if (first === "{") return object(depth);
    if (first === "[") return array(depth);
    if (first === '"') return string();
    if (text.startsWith("true", at)) return consume(4, true);
    if (text.startsWith("false", at)) return consume(5, false);
    if (text.startsWith("null", at)) return consume(4, null);
    const digits = match(numberPattern);
    if (digits === "") throw unexpected();
    return { kind: "number", value: Number(digits), text: digits };
  }

  function consume<T>(length: number, meaning: T): T {
    at += length;
    return meaning;
  }

  function string(): string {
    const start = at;
    at += 1;
    let result = match(plainPattern);
    if (text[at] === "\\") {
      const decoded = escaped(start);
      if (decoded !== undefined) return decoded;
    }
    while (text[at] !== '"') {
      if (text[at] !== "\\") throw at < text.length ? fail("unescaped control character") : fail("unterminated string");
      result += escape() + match(plainPattern);
    }
    at += 1;
    return result;
  }

  /**
   * Decodes a string with escapes by JSON.parse. Returns undefined for an invalid string; the caller then scans it to
   * locate the fault.
   */
  function escaped(start: number): string | undefined {
    const end = endOfString(text, at);
    try {
      const result = JSON.parse(text.slice(start, end)) as string;
      at = end;
      return result;
    } catch {
      return undefined;
    }
  }

  function escape(): string {
    const letter = text[at + 1] ?? "";
    const meaning = escapes.get(letter);
    if (meaning !== undefined) return consume(2, meaning);
    const hex = text.slice(at + 2, at + 6);
    if (letter !== "u" || !/^[0-9a-fA-F]{4}$/.test(hex)) throw fail("unknown escape");
    return consume(6, String.fromCharCode(Number.parseInt(hex, 16)));
  }

  function array(depth: number): JsonNode {
    const items: JsonNode[] = [];
    at += 1;
    space();
    if (text[at] === "]") return consume(1, { kind: "array", items } as const);
    for (;;) {
      space();
      items.push(value(depth + 1));
      space();
      if (text[at] === "]") return consume(1, { kind: "array", items } as const);
      if (text[at] !== ",") throw unexpected();
      at += 1;
    }
  }

  function object(depth: number): JsonNode {
    const members = new Map<string, JsonMember>();
    const repeated: string[] = [];
    at += 1;
    space();
    if (text[at] === "}") return consume(1, { kind: "object", members, repeated } as const);
    for (;;) {
      space();
      if (text[at] !== '"') throw unexpected();
      const key = string();
      space();
      if (text[at] !== ":") throw unexpected();
      at += 1;
      space();
      const start = at;
      const member = { value: value(depth + 1), start, end: at };
      if (members.has(key)) repeated.push(key);
      members.set(key, member);
      space();
      if (text[at] === "}") return consume(1, { kind: "object", members, repeated } as const);
      if (text[at] !== ",") throw unexpected();
      at += 1;
    }
  }

  space();
  const root = value(0);
  space();
  if (at < text.length) throw unexpected();
  return root;
}

/** Offset after the first unescaped quotation mark; the length of the text if there is none. */
function endOfString(text: string, from: number): number {
  for (let quote = text.indexOf('"', from); quote >= 0; quote = text.indexOf('"', quote + 1)) {
    let first = quote;
    while (first > from && text[first - 1] === "\\") first -= 1;
    if ((quote - first) % 2 === 0) return quote + 1;
  }
  return text.length;
}

/** A parsed body. */
export interface ReadJson {
  readonly text: string;
  readonly value: JsonObject;
}

/** The fault of a body that is not a JSON object. */
export interface BodyFault {
  readonly code: string;
  readonly detail: string;
}

/** Parses one JSON object in UTF-8 with at most `valuesMax` values. */
export function readJson(bytes: Uint8Array, valuesMax: number): ReadJson | BodyFault {
  let text: string;
  let value: JsonNode;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    value = parseJson(text, valuesMax);
  } catch (error) {
    if (error instanceof JsonSyntaxError) return { code: "invalid_json", detail: error.message };
    if (error instanceof TypeError) return { code: "invalid_utf8", detail: "must be UTF-8" };
    throw error;
  }
  if (value === null || typeof value !== "object" || value.kind !== "object")
    return { code: "wrong_type", detail: `must be an object, not ${nameOfKind(value)}` };
  return { text, value };
}
