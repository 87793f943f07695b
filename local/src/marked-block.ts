/**
 * Lines of one owner in a file that others write too, such as /etc/hosts: between `# holdfast begin OWNER` and
 * `# holdfast end OWNER`. The owner is the data directory of an installation.
 */
export function withBlock(text: string, owner: string, lines: readonly string[], position: "first" | "last"): string {
  const others = withoutBlock(text, owner);
  const block = `${[beginOf(owner), ...lines, endOf(owner)].join("\n")}\n`;
  if (position === "first") return `${block}${others}`;
  return `${others}${others === "" || others.endsWith("\n") ? "" : "\n"}${block}`;
}

/** The text without the owner's lines; without an end, only its first line goes. */
export function withoutBlock(text: string, owner: string): string {
  const lines = text.split("\n");
  const begin = lines.indexOf(beginOf(owner));
  if (begin < 0) return text;
  const end = lines.indexOf(endOf(owner), begin);
  lines.splice(begin, end < 0 ? 1 : end - begin + 1);
  return withoutBlock(lines.join("\n"), owner);
}

/** Owners that have lines in the text. */
export function ownersOf(text: string): string[] {
  return text.split("\n").flatMap((line) => (line.startsWith(beginOf("")) ? [line.slice(beginOf("").length)] : []));
}

const beginOf = (owner: string) => `# holdfast begin ${owner}`;
const endOf = (owner: string) => `# holdfast end ${owner}`;
