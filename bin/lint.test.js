import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import forbidden from "./lint/forbidden-words.json" with { type: "json" };
import { checkout } from "./set-up.js";

const samples = join(checkout, "bin", "lint", "samples");
const header = /^=== (refused|accepted) (\S+): (.*)$/m;

/**
 * The sources in the samples of a rule, each below its line `=== refused PATH: NAME` or `=== accepted PATH: NAME`. They
 * are no files of their own, so that no tool reads them as code. One with `<type>` is a source for each forbidden type.
 */
function casesOf(file) {
  const rule = basename(file, ".txt");
  const [before, ...parts] = readFileSync(join(samples, file), "utf8").split(header);
  if (before !== "") throw new Error(`${file} does not begin with the header of a source.`);
  const cases = [];
  for (let part = 0; part < parts.length; part += 4) {
    const [verdict, path, name, text] = parts.slice(part, part + 4);
    const types = text.includes("<type>") ? forbidden.types : [""];
    for (const type of types)
      cases.push({
        title: `${rule}: ${name.replace("<type>", type)}`,
        path,
        text: `${text.replace("<type>", type).trim()}\n`,
        rules: verdict === "refused" ? [rule] : [],
      });
  }
  return cases;
}

const cases = readdirSync(samples)
  .flatMap(casesOf)
  .map((each, index) => ({ ...each, path: join(String(index), each.path) }));

const directory = mkdtempSync(join(tmpdir(), "holdfast-lint-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Our rules that found something, by file. */
const found = new Map();
beforeAll(async () => {
  for (const { path, text } of cases) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), text);
  }
  const oxlint = join(checkout, "node_modules", ".bin", "oxlint");
  const args = ["-c", join(checkout, ".oxlintrc.json"), "-f", "json", directory];
  // Its exit status is 1, as it finds faults.
  const { stdout } = await promisify(execFile)(oxlint, args).catch((error) => error);
  for (const { filename, code } of JSON.parse(stdout).diagnostics) {
    const [, rule] = /^holdfast\((.*)\)$/.exec(code) ?? [];
    const file = filename.slice(filename.lastIndexOf(directory) + directory.length + 1);
    if (rule !== undefined) found.set(file, [...(found.get(file) ?? []), rule]);
  }
}, 60_000);

test("each rule has a source that it refuses", () => {
  expect(new Set(cases.flatMap(({ rules }) => rules)).size).toBe(readdirSync(samples).length);
});

test.each(cases.map(({ title, path, rules }) => [title, path, rules]))("%s", (_, path, rules) => {
  expect([...new Set(found.get(path))]).toEqual(rules);
});
