import type { JsonMember, JsonNode } from "./json-node.ts";

/** The text is not JSON (RFC 8259); says where. */
export class JsonSyntaxError extends Error {
  override readonly name = "JsonSyntaxError";
}

const maxDepth = 64;
/** Values that a text with raw values may have. */
export const maxValues = 500_000;
/** Values of any other: each costs the event loop about a microsecond, and no method has fields for so many. */
export const inlineValues = 12_000;

const numberPattern = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const spacePattern = /[ \t\r\n]*/y;
// A run without escapes.
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

/** Reads one JSON text. Throws JsonSyntaxError, also for nesting deeper than 64 and for more values than `most`. */
export function parseJson(text: string, most = maxValues): JsonNode {
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
    if (values > most) throw fail(`more than ${most} values`);
    const first = text[at];
    if (first === "{") return object(depth);
    if (first === "[") return array(depth);
    if (first === '"') return string();
    if (text.startsWith("true", at)) return word(4, true);
    if (text.startsWith("false", at)) return word(5, false);
    if (text.startsWith("null", at)) return word(4, null);
    const digits = match(numberPattern);
    if (digits === "") throw unexpected();
    return { kind: "number", value: Number(digits), text: digits };
  }

  function word<T>(length: number, meaning: T): T {
    at += length;
    return meaning;
  }

  function string(): string {
    const start = at;
    at += 1;
    let result = match(plainPattern);
    if (text[at] === "\\") {
      const whole = escaped(start);
      if (whole !== undefined) return whole;
    }
    while (text[at] !== '"') {
      if (text[at] !== "\\") throw at < text.length ? fail("unescaped control character") : fail("unterminated string");
      result += escape() + match(plainPattern);
    }
    at += 1;
    return result;
  }

  /**
   * A string with escapes, decoded at once; undefined for a faulty one, which is then read again to locate the fault.
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
    if (meaning !== undefined) return word(2, meaning);
    const hex = text.slice(at + 2, at + 6);
    if (letter !== "u" || !/^[0-9a-fA-F]{4}$/.test(hex)) throw fail("unknown escape");
    return word(6, String.fromCharCode(Number.parseInt(hex, 16)));
  }

  function array(depth: number): JsonNode {
    const items: JsonNode[] = [];
    at += 1;
    space();
    if (text[at] === "]") return word(1, { kind: "array", items } as const);
    for (;;) {
      space();
      items.push(value(depth + 1));
      space();
      if (text[at] === "]") return word(1, { kind: "array", items } as const);
      if (text[at] !== ",") throw unexpected();
      at += 1;
    }
  }

  function object(depth: number): JsonNode {
    const members = new Map<string, JsonMember>();
    const repeated: string[] = [];
    at += 1;
    space();
    if (text[at] === "}") return word(1, { kind: "object", members, repeated } as const);
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
      if (text[at] === "}") return word(1, { kind: "object", members, repeated } as const);
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

/** Behind the first quotation mark that no backslash escapes; the text's own end without one. */
function endOfString(text: string, from: number): number {
  for (let quote = text.indexOf('"', from); quote >= 0; quote = text.indexOf('"', quote + 1)) {
    let first = quote;
    while (first > from && text[first - 1] === "\\") first -= 1;
    if ((quote - first) % 2 === 0) return quote + 1;
  }
  return text.length;
}
