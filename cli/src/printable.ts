/**
 * Characters with an effect on a terminal beyond their own cell: control characters, line separators, and marks of
 * text direction.
 */
const control = "\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069";
const controls = new RegExp(`[${control}]+`, "g");
/** The same without tab and line feed. */
const controlsOfLines = new RegExp(`(?![\\t\\n])[${control}]`, "g");

/** One line of text in which nothing controls the terminal. */
export function printable(text: string): string {
  return text.replaceAll(controls, " ");
}

/** Like `printable`, for a text of several lines. */
export function printableLines(text: string): string {
  return text.replaceAll(controlsOfLines, " ");
}

/** JSON, or YAML in double quotes, with these characters as escapes, so that a reader gets the value unchanged. */
export function escaped(text: string): string {
  return text.replaceAll(controlsOfLines, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** True if a text of several lines has characters that `printableLines` replaces. */
export function hasControls(text: string): boolean {
  return text.search(controlsOfLines) >= 0;
}
