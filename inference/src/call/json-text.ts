const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [brace, braceEnd, bracket, bracketEnd] = [0x7b, 0x7d, 0x5b, 0x5d];

/** Position of a value in a JSON text; `end` is exclusive. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Members of the top level of a JSON object. */
export interface Members {
  /** Position of each value, by decoded key; for a key that occurs twice, the position of the last value. */
  readonly values: ReadonlyMap<string, Span>;
  /** A key that occurs twice; undefined if there is none. */
  readonly duplicate: string | undefined;
}

/** Locates the members of a JSON object. The text must be valid JSON. */
export function membersOf(json: string): Members {
  const values = new Map<string, Span>();
  let duplicate: string | undefined;
  let depth = 0;
  let key: string | undefined;
  let start = 0;
  const endMember = (end: number) => {
    if (key === undefined) return;
    if (values.has(key)) duplicate ??= key;
    values.set(key, trimmed(json, start, end));
    key = undefined;
  };
  for (let at = 0; at < json.length; at += 1) {
    const character = json.charCodeAt(at);
    if (character === quote) {
      const end = endOfString(json, at);
      if (depth === 1 && key === undefined) {
        // Escapes are decoded: "mod\u0065l" is "model".
        key = JSON.parse(json.slice(at, end + 1)) as string;
        start = json.indexOf(":", end) + 1;
        at = start - 1;
      } else at = end;
    } else if (character === brace || character === bracket) depth += 1;
    else if (character === braceEnd || character === bracketEnd) {
      depth -= 1;
      if (depth === 0) endMember(at);
    } else if (character === comma && depth === 1) endMember(at);
  }
  return { values, duplicate };
}

function trimmed(json: string, from: number, to: number): Span {
  let start = from;
  let end = to;
  while (isSpace(json, start)) start += 1;
  while (isSpace(json, end - 1)) end -= 1;
  return { start, end };
}

/** White space of JSON (RFC 8259 section 2). */
function isSpace(json: string, at: number): boolean {
  const character = json.charCodeAt(at);
  return character === 0x20 || character === 0x0a || character === 0x0d || character === 0x09;
}

/** Index of the closing quote; -1 if there is none. */
function endOfString(json: string, start: number): number {
  let at = json.indexOf('"', start + 1);
  while (at >= 0 && isEscaped(json, at)) at = json.indexOf('"', at + 1);
  return at;
}

/** True if an odd number of backslashes precedes the character. */
function isEscaped(json: string, at: number): boolean {
  let before = at;
  while (json.charCodeAt(before - 1) === backslash) before -= 1;
  return (at - before) % 2 === 1;
}

/**
 * True if objects and arrays are nested deeper than `max`. The text need not be valid JSON: this check runs before
 * parsing, because parsing and serializing recurse to that depth.
 */
export function nestsDeeper(json: string, max: number): boolean {
  let depth = 0;
  for (let at = 0; at < json.length; at += 1) {
    const character = json.charCodeAt(at);
    if (character === quote) {
      const end = endOfString(json, at);
      if (end < 0) return false;
      at = end;
    } else if (character === brace || character === bracket) {
      depth += 1;
      if (depth > max) return true;
    } else if (character === braceEnd || character === bracketEnd) depth -= 1;
  }
  return false;
}
