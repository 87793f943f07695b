import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { link, table } from "./pages.ts";

const folder = join(import.meta.dirname, "../../docs/development/adr");

/** The index of decisions, from the first line of each page. The oldest have numbers, all others their dates. */
export async function decisionsPage(): Promise<string> {
  const files = (await readdir(folder)).filter((file) => file !== "README.md").sort();
  const rows = await Promise.all(files.map(async (file) => rowOf(file, await readFile(join(folder, file), "utf8"))));
  return [
    "# Decisions",
    "",
    "One a page: the decision, its reasons, and the rejected alternatives. A changed decision gets a new page; the old one links to it.",
    "A page is named by its date, `<yyyy-mm-dd>-<name>.md`, and begins with its title; `npm run generate` prints this table.",
    "",
    ...table(["", "decision"], rows),
    "",
  ].join("\n");
}

function rowOf(file: string, text: string): readonly [string, string] {
  const [, date, number] = /^(?:(\d{4}-\d{2}-\d{2})|(\d{4}))-[a-z0-9-]+\.md$/.exec(file) ?? [];
  const label = number === undefined ? date : String(Number(number));
  if (label === undefined) throw new Error(`docs/development/adr/${file}: the name must be <yyyy-mm-dd>-<name>.md`);
  const [, title] = /^# (?:\d+\. )?(.+)\n/.exec(text) ?? [];
  if (title === undefined) throw new Error(`docs/development/adr/${file}: the first line must be its title, "# ..."`);
  return [link(label, file), title];
}
