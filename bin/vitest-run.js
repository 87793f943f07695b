// One run of vitest, and the outcome of each of its files.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { checkout } from "./set-up.js";

/** No test or hook takes this long without output; a run that does is hanging, and is ended. */
const longestSilenceMs = 10 * 60_000;
const checkIntervalMs = 5_000;
const endLines = 30;

/**
 * @typedef {{ name: string, state: "passed" | "failed" | "skipped", message: string }} TestOutcome
 * @typedef {{ path: string, seconds: number, tests: TestOutcome[], errors: string[] }} FileOutcome
 * @typedef {{ tests: string, reason: string, isFault: boolean }} SkippedTests
 * @typedef {{ files: FileOutcome[], fault: string | undefined, skipped: SkippedTests[] }} RunOutcome `fault`: a failure
 * of no file.
 */

/**
 * Runs vitest with these arguments and prints each of its lines after `name`. A file that did not end, or that caused
 * an error outside of its tests, has that among its errors.
 * @returns {Promise<RunOutcome>}
 */
export async function runVitest(name, args, { node, env, root = checkout }) {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-results-"));
  const results = join(directory, "results.ndjson");
  const vitest = join(checkout, "node_modules", "vitest", "vitest.mjs");
  const reporters = ["--reporter=default", `--reporter=${join(checkout, "bin", "results-reporter.js")}`];
  try {
    const ran = await run(name, node, [vitest, "run", "--passWithNoTests", ...reporters, ...args], {
      cwd: root,
      env: { ...env, HOLDFAST_TEST_RESULTS: results },
      results,
    });
    return outcomeOf(linesOf(results), ran);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function outcomeOf(lines, { code, why, end }) {
  const planned = lines.flatMap((line) => line.planned ?? []);
  const files = new Map(lines.flatMap(({ ended }) => (ended === undefined ? [] : [[ended.path, ended]])));
  const ending = `vitest ended with ${code}${why}`;
  const unfinished = planned
    .filter((path) => !files.has(path))
    .map((path) => ({ path, seconds: 0, tests: [], errors: [`${ending} before this file did`] }));
  for (const file of unfinished) files.set(file.path, file);
  const strays = [];
  for (const { path, message } of lines.flatMap((line) => line.unhandled ?? [])) {
    const file = files.get(path);
    // The end of a worker is reported without its file, which is one that did not end.
    if (file === undefined && unfinished.length > 0) for (const each of unfinished) each.errors.push(message);
    else if (file === undefined) strays.push(message);
    else file.errors.push(`an error outside of every test: ${message}`);
  }
  const found = [...files.values()];
  const isReported = found.some(
    ({ tests, errors }) => errors.length > 0 || tests.some(({ state }) => state === "failed"),
  );
  if (code !== 0 && !isReported && strays.length === 0) strays.push(`${ending} and no test failed\n${end}`);
  const skipped = lines.flatMap((line) => line.skipped ?? []);
  return { files: found, fault: strays.length === 0 ? undefined : strays.join("\n"), skipped };
}

function run(name, command, args, { results, ...options }) {
  const last = [];
  let why = "";
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
    for (const [from, to] of [
      [child.stdout, process.stdout],
      [child.stderr, process.stderr],
    ]) {
      createInterface({ input: from }).on("line", (line) => {
        to.write(line === "" ? "\n" : `${name} | ${line}\n`);
        last.push(line);
        if (last.length > endLines) last.shift();
      });
    }
    const startedAt = Date.now();
    const watch = setInterval(() => {
      if (Date.now() - (writtenAt(results) ?? startedAt) < longestSilenceMs) return;
      why = ` after ${longestSilenceMs / 60_000} minutes without a result`;
      child.kill("SIGKILL");
    }, checkIntervalMs);
    child.once("error", reject);
    child.once("close", (code, signal) => {
      clearInterval(watch);
      resolve({ code: code ?? signal, why, end: last.join("\n") });
    });
  });
}

function writtenAt(file) {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs;
}

/** Empty when vitest ended before it wrote any. */
function linesOf(file) {
  if (writtenAt(file) === undefined) return [];
  const lines = readFileSync(file, "utf8").split("\n");
  // The last line is empty, or was cut by the end of the run.
  return lines.slice(0, -1).map((line) => JSON.parse(line));
}
