const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [brace, braceEnd, bracket, bracketEnd] = [0x7b, 0x7d, 0x5b, 0x5d];

/**
 * A key that occurs twice at the top level of a JSON object; undefined if there is none. The text must be valid JSON.
 */
export function duplicateKey(json: string): string | undefined {
  const seen = new Set<string>();
  let depth = 0;
  let expectsKey = false;
  for (let at = 0; at < json.length; at += 1) {
    const character = json.charCodeAt(at);
    if (character === quote) {
      const end = endOfString(json, at);
      if (depth === 1 && expectsKey) {
        // Escapes are decoded: "mod\u0065l" is "model".
        const key = JSON.parse(json.slice(at, end + 1)) as string;
        if (seen.has(key)) return key;
        seen.add(key);
        expectsKey = false;
      }
      at = end;
    } else if (character === brace || character === bracket) {
      depth += 1;
      if (depth === 1) expectsKey = character === brace;
    } else if (character === braceEnd || character === bracketEnd) depth -= 1;
    else if (character === comma && depth === 1) expectsKey = true;
  }
  return undefined;
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
