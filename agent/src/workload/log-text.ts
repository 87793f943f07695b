import { stripVTControlCharacters } from "node:util";

/** A line as programs print it, without the sequences of a terminal, such as those of colors. */
export function withoutColors(text: string): string {
  return text.includes("\u001b") || text.includes("\u009b") ? stripVTControlCharacters(text) : text;
}
