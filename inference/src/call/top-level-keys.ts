const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [brace, braceEnd, bracket, bracketEnd] = [0x7b, 0x7d, 0x5b, 0x5d];

/** The key that a JSON object has twice at its top level; undefined for none. The text is valid JSON. */
export function doubledKey(json: string): string | undefined {
  const seen = new Set<string>();
  let depth = 0;
  let expectsKey = false;
  for (let at = 0; at < json.length; at += 1) {
    const character = json.charCodeAt(at);
    if (character === quote) {
      const end = endOfString(json, at);
      if (depth === 1 && expectsKey) {
        // Two spellings of one key are one key: "mod\u0065l" is "model".
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

/** The place of the quote that ends it; -1 when none does. */
export function endOfString(json: string, start: number): number {
  let at = json.indexOf('"', start + 1);
  while (at >= 0 && isEscaped(json, at)) at = json.indexOf('"', at + 1);
  return at;
}

/** An odd number of backslashes is before it. */
function isEscaped(json: string, at: number): boolean {
  let before = at;
  while (json.charCodeAt(before - 1) === backslash) before -= 1;
  return (at - before) % 2 === 1;
}
