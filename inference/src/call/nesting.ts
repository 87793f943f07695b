import { endOfString } from "./top-level-keys.ts";

const [quote, brace, braceEnd, bracket, bracketEnd] = [0x22, 0x7b, 0x7d, 0x5b, 0x5d];

/**
 * Do objects and lists of a text lie deeper in each other than so many? It need not be JSON: a parser makes an object of each, and
 * writing them again goes as deep on the stack, so it is judged before.
 */
export function nestsDeeper(json: string, most: number): boolean {
  let depth = 0;
  for (let at = 0; at < json.length; at += 1) {
    const character = json.charCodeAt(at);
    if (character === quote) {
      const end = endOfString(json, at);
      if (end < 0) return false;
      at = end;
    } else if (character === brace || character === bracket) {
      depth += 1;
      if (depth > most) return true;
    } else if (character === braceEnd || character === bracketEnd) depth -= 1;
  }
  return false;
}
