/** Control characters and line separators, which move a terminal's cursor or start its commands. */
const control = "\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029";
/**
 * Marks of text direction, and characters without a glyph, which would disguise a text as another one. The API refuses
 * them in names (common/src/plain-text.ts), but names that were created in SQL and messages of engines may have them.
 */
const invisible = [
  "\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069",
  "\\u00ad\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b\\u2060-\\u2065\\u206a-\\u206f",
  "\\u2800\\u3164\\ufeff\\uffa0\\ufff0-\\ufffb\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}",
].join("");
const controls = new RegExp(`[${control}]+`, "gu");
/** Control characters except tab and line feed. */
const controlsOfLines = new RegExp(`(?![\\t\\n])[${control}]`, "gu");
const invisibles = new RegExp(`[${invisible}]`, "gu");
const hidden = new RegExp(`(?![\\t\\n])[${control}${invisible}]`, "gu");

/** One line of text: a space replaces control characters, and escapes such as `\u200b` replace invisible ones. */
export function printable(text: string): string {
  return text.replaceAll(controls, " ").replaceAll(invisibles, visibleEscape);
}

/** Several lines of text with the replacements of `printable`; tabs and line feeds remain. */
export function printableLines(text: string): string {
  return text.replaceAll(controlsOfLines, " ").replaceAll(invisibles, visibleEscape);
}

/** JSON with control and invisible characters as escapes, so that a reader gets the value unchanged. */
export function escapedJson(json: string): string {
  const ofUnit = (unit: string) => `\\u${hexOf(unit.charCodeAt(0), 4)}`;
  return json.replaceAll(hidden, (each) => each.split("").map(ofUnit).join(""));
}

/** YAML in double quotes with these characters as escapes: `\u200b`, and `\U000e0041` beyond 16 bits. */
export function escapedYaml(yaml: string): string {
  return yaml.replaceAll(hidden, (each) => {
    const code = each.codePointAt(0) ?? 0;
    return code > 0xffff ? `\\U${hexOf(code, 8)}` : `\\u${hexOf(code, 4)}`;
  });
}

/** True if a text of several lines has control or invisible characters. */
export function hasHidden(text: string): boolean {
  return text.search(hidden) >= 0;
}

/** The escape of JavaScript: `\u200b`, and `\u{e0041}` beyond 16 bits. */
function visibleEscape(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return code > 0xffff ? `\\u{${hexOf(code, 1)}}` : `\\u${hexOf(code, 4)}`;
}

function hexOf(code: number, digits: number): string {
  return code.toString(16).padStart(digits, "0");
}
