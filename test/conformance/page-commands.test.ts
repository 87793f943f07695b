import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { everyCommand, leavesOf, pathOf } from "@holdfast/cli/every-command.ts";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..", "..");
const pages = ["README.md", ...globSync("docs/**/*.md", { cwd: root })];

/** Command of a host's software, not of the command line. */
const ofHosts = "images";

/** Commands of `holdfast` in the code blocks of a page, without comments. */
function commandsIn(page: string): string[] {
  const blocks = readFileSync(join(root, page), "utf8").match(/^```[^\n]*\n.*?^```/gms) ?? [];
  return blocks.flatMap((block) =>
    [...block.matchAll(/^(?:\.\/bin\/)?holdfast(?:\.js)? (\S.*)$/gm)].map(([, line = ""]) =>
      line.replace(/\s#.*/, "").trim(),
    ),
  );
}

test("commands in pages exist", async () => {
  const paths = new Set(leavesOf(await everyCommand()).map((command) => pathOf(command).join(" ")));
  const missing = pages.flatMap((page) =>
    commandsIn(page)
      .filter((line) => {
        const words = line.replace(/^(--\S+ \S+ )+/, "").split(" ");
        if (line === "--help" || words[0] === ofHosts) return false;
        return ![1, 2, 3, 4].some((count) => paths.has(words.slice(0, count).join(" ")));
      })
      .map((line) => `${page}: ${line}`),
  );
  expect(missing).toEqual([]);
});
