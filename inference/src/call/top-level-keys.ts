/** The key that a JSON object has twice at its top level; undefined for none. The text is valid JSON. */
export function doubledKey(json: string): string | undefined {
  const seen = new Set<string>();
  let depth = 0;
  let expectsKey = false;
  for (let at = 0; at < json.length; at += 1) {
    const character = json[at];
    if (character === '"') {
      const end = endOfString(json, at);
      if (depth === 1 && expectsKey) {
        // Two spellings of one key are one key: "mod\u0065l" is "model".
        const key = JSON.parse(json.slice(at, end + 1)) as string;
        if (seen.has(key)) return key;
        seen.add(key);
        expectsKey = false;
      }
      at = end;
    } else if (character === "{" || character === "[") {
      depth += 1;
      if (depth === 1) expectsKey = character === "{";
    } else if (character === "}" || character === "]") depth -= 1;
    else if (character === "," && depth === 1) expectsKey = true;
  }
  return undefined;
}

function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (at < json.length && json[at] !== '"') at += json[at] === "\\" ? 2 : 1;
  return at;
}
