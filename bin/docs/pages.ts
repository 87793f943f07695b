/** Texts of printed pages by their paths below docs/reference/. */
export type Pages = ReadonlyMap<string, string>;

function row(...cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

/** A table with a head; a cell keeps its text, so a `|` in it must be escaped. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  return [row(...head), row(...head.map(() => "---")), ...rows.map((cells) => row(...cells))];
}

/** The path as a link from an index beside the folder. */
export function link(text: string, path: string): string {
  return `[${text}](${path})`;
}
