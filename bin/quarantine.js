// Flaky tests with a known cause that is not fixed yet: they run and are printed, and fail no run.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { checkout } from "./set-up.js";

const file = join(checkout, "test", "quarantine.json");
const maxEntries = 10;
const fields = ["file", "reason", "since", "test"];

/** @returns {{ file: string, test: string, since: string, reason: string }[]} */
function readQuarantine() {
  return JSON.parse(readFileSync(file, "utf8"));
}

export function createIsQuarantined(entries = readQuarantine()) {
  const names = new Set(entries.map((entry) => `${entry.file}\n${entry.test}`));
  return (path, test) => names.has(`${path}\n${test}`);
}

/** Throws unless the list is short, has reasons and dates, and names existing tests. */
export async function checkQuarantine(tools, entries = readQuarantine()) {
  if (entries.length > maxEntries)
    throw new Error(`${entries.length} tests are in quarantine, at most ${maxEntries} are allowed`);
  for (const entry of entries) {
    const isComplete = Object.keys(entry).sort().join() === fields.join() && fields.every((name) => entry[name] !== "");
    if (!isComplete || !/^\d{4}-\d\d-\d\d$/.test(entry.since)) {
      throw new Error(`an entry has ${fields.join(", ")}, and the day as 2026-01-31: ${JSON.stringify(entry)}`);
    }
  }
  const files = [...new Set(entries.map((entry) => join(checkout, entry.file)))];
  const listed = files.length === 0 ? [] : JSON.parse(await tools.run("vitest", ["list", ...files, "--json"]));
  const known = new Set(listed.map((test) => `${test.file}\n${test.name}`));
  const unknown = entries.filter((entry) => !known.has(`${join(checkout, entry.file)}\n${entry.test}`));
  if (unknown.length > 0)
    throw new Error(
      `The quarantine lists tests that do not exist: ${unknown.map((e) => `${e.file} > ${e.test}`).join(", ")}`,
    );
  // With an empty list, the list itself is what was checked.
  return 1 + entries.length;
}
