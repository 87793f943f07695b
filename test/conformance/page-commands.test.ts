import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { leavesOf, silentDeps } from "@holdfast/cli/every-command.ts";
import { createProgram } from "@holdfast/cli/program.ts";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..", "..");
const pages = ["README.md", ...globSync("docs/**/*.md", { cwd: root })];

/** Commands of a host's software, not of the command line. */
const ofHosts = new Set(["up", "start", "host", "dns", "images", "clean", "install", "upgrade", "uninstall", "update"]);

const program = /(?:^|\$\(|[|&;] *|sudo )(?:\.\/bin\/)?holdfast(?:\.js)? (?=\S)/g;
/** A word of a shell's command: parts in quotes, substitutions and other characters; or the end of the command. */
const shellWord = /\s*(?:((?:"[^"]*"|'[^']*'|\$\([^)]*\)|\\.|[^\s"'|&;<>)\\#]|(?<=\S)#)+)|([|&;<>)#]))/y;

/** Words of the command at the beginning of the text, without their quotes. */
function wordsAt(text: string): string[] {
  const words: string[] = [];
  shellWord.lastIndex = 0;
  for (let match = shellWord.exec(text); match?.[1] !== undefined; match = shellWord.exec(text))
    words.push(match[1].replaceAll(/^["']|["']$/g, ""));
  return words;
}

/** Commands of `holdfast` in the code blocks of a page, as words. */
function commandsIn(page: string): string[][] {
  const blocks = readFileSync(join(root, page), "utf8").match(/^ *```[^\n]*\n.*?^ *```/gms) ?? [];
  return blocks.flatMap((block) =>
    block
      .replaceAll(/\\\n */g, "")
      .split("\n")
      .map((line) => line.trim())
      .flatMap((line) =>
        [...line.matchAll(program)].map(({ index, 0: { length } }) => wordsAt(line.slice(index + length))),
      ),
  );
}

/** Reason for which the command line refuses the words; undefined if it takes them. */
async function refusalOf(words: readonly string[]): Promise<string | undefined> {
  try {
    const command = await createProgram(words, silentDeps);
    for (const leaf of leavesOf(command)) leaf.action(() => leaf.checkFlags());
    await command.parseAsync([...words], { from: "user" });
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

test.each(pages.filter((page) => commandsIn(page).length > 0))(
  "commands of %s are taken by the command line",
  async (page) => {
    const refused: string[] = [];
    for (const words of commandsIn(page)) {
      if (ofHosts.has(words[0] ?? "") || words.includes("--help")) continue;
      const refusal = await refusalOf(words);
      if (refusal !== undefined) refused.push(`${words.join(" ")}: ${refusal}`);
    }
    expect(refused).toEqual([]);
  },
);
