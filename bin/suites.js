// The suites of both lanes: their test files, the number of parallel files, and the reruns of red files, one at a time.
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createIsQuarantined } from "./quarantine.js";
import { checkout, progress } from "./set-up.js";
import { sourceFiles } from "./source-files.js";
import { faultsOf, readable, verdictOf } from "./verdict.js";
import { runVitest } from "./vitest-run.js";

/**
 * Number of parallel files. Each has its own installation; files that break things have the machine to
 * themselves.
 */
const workers = { quick: 3, long: 2, alone: 1 };
const lanes = { quick: ["quick"], long: ["alone", "long"] };

/**
 * The suites of a lane, or of both, as `{name, files, workers}`. `parts` selects the files with one of them in their
 * path.
 * @param {"quick" | "long" | undefined} lane
 */
export function suitesOf(lane, parts = []) {
  const files = sourceFiles().filter((path) => /\.test\.[jt]s$/.test(path));
  const selected = parts.length === 0 ? files : files.filter((path) => parts.some((part) => path.includes(part)));
  const names = lane === undefined ? Object.values(lanes).flat() : lanes[lane];
  return names
    .map((name) => ({ name, files: selected.filter((path) => suiteOf(path) === name), workers: workers[name] }))
    .filter((suite) => suite.files.length > 0);
}

/**
 * Files that wait on purpose, or that need the installations of more than one machine, are the long lane
 * (`npm run test:long`) by their names; all others are the quick lane, `npm test`.
 */
function suiteOf(path) {
  if (path.startsWith("test/faults/")) return "alone";
  return /\.long\.test\.[jt]s$/.test(path) ? "long" : "quick";
}

/** Number of reruns of a red file. */
const maxReruns = 2;
/** With more red files than this, the cause is not chance, and reruns would only take time. */
const maxRerunFiles = 25;

/**
 * Runs the suites. A red file runs again at the end with nothing beside it; when it is green then, it counts as flaky.
 * Returns the numbers of passed tests, the failures, flaky and quarantined tests, those that this host cannot run, the
 * seconds of each suite and file, and the folder with the logs of red files, if there are any.
 */
export async function runSuites(suites, node, env, { root = checkout, isQuarantined = createIsQuarantined() } = {}) {
  const logs = mkdtempSync(join(tmpdir(), "holdfast-failed-"));
  // A short name, because of socket paths; users of machines pass through it.
  const temporary = mkdtempSync(join(tmpdir(), "hf-"));
  chmodSync(temporary, 0o1777);
  const options = {
    node,
    env: { ...env, HOLDFAST_TEST_LOGS: logs, HOLDFAST_TEST_ROOT: root, TMPDIR: temporary },
    root,
  };
  const runs = new Map();
  const failures = [];
  const skipped = new Map();
  const times = [];

  async function run(name, files, workerCount) {
    const paths = files.map((path) => join(root, path));
    const outcome = await runVitest(name, [...paths, `--maxWorkers=${workerCount}`], options);
    for (const file of outcome.files) runs.set(file.path, [...(runs.get(file.path) ?? []), file]);
    for (const each of outcome.skipped) skipped.set(`${each.tests}: ${each.reason}`, each);
    if (outcome.fault !== undefined) failures.push(`${name}\n${readable(outcome.fault)}`);
    return outcome.files;
  }

  async function rerun(path) {
    for (let n = 1; n <= maxReruns && isRed(runs.get(path).at(-1)); n += 1) {
      progress(`${path} was red, and runs alone for the ${n === 1 ? "second" : "third"} time`);
      const ended = await run("rerun", [path], 1);
      // Vitest ended before it ran the file.
      if (ended.length === 0) return;
    }
  }

  const isRed = (file) => faultsOf(file, isQuarantined).length > 0;
  const everRed = new Set();
  for (const suite of suites) {
    const startedAt = Date.now();
    const files = await run(suite.name, suite.files, suite.workers);
    const red = files.filter(isRed);
    for (const { path } of red) everRed.add(path);
    times.push({ name: `suite ${suite.name}`, seconds: (Date.now() - startedAt) / 1_000 });
    progress(`suite ${suite.name}: ${files.length} files, ${red.length} red`);
  }
  if (everRed.size > maxRerunFiles) progress(`${everRed.size} files are red: none is run again`);
  else for (const path of everRed) await rerun(path);

  keepOnly(logs, everRed);
  rmSync(temporary, { recursive: true, force: true, maxRetries: 5 });
  const verdicts = [...runs.values()].map((each) => verdictOf(each, isQuarantined));
  return {
    passed: verdicts.reduce((sum, { passed }) => sum + passed, 0),
    failures: [...failures, ...verdicts.flatMap((verdict) => verdict.failures)],
    flaky: verdicts.flatMap(({ flaky }) => flaky),
    quarantined: verdicts.flatMap(({ quarantined }) => quarantined),
    skipped: [...skipped.values()],
    times,
    files: [...runs].map(([path, [first]]) => ({ path, seconds: first.seconds })),
    logs: existsSync(logs) ? logs : undefined,
  };
}

/** Logs are in a folder for each test file, named after its path. An empty folder is removed. */
function keepOnly(logs, paths) {
  const names = new Set([...paths].map((path) => path.replaceAll("/", "_")));
  for (const name of readdirSync(logs)) if (!names.has(name)) rmSync(join(logs, name), { recursive: true });
  if (readdirSync(logs).length === 0) rmdirSync(logs);
}

/**
 * Number of groups of tests that fail the run because this host cannot run them: those that every host of continuous
 * integration is to run, where `CI` is set.
 * @param {import("./vitest-run.js").SkippedTests[]} skipped
 */
export function skippedFaults(skipped, { CI = "" }) {
  return ["", "0", "false"].includes(CI) ? 0 : skipped.filter(({ isFault }) => isFault).length;
}

const reasonMax = 500;

/** A reason such as the end of a program's output, as one line. */
export function oneLine(text) {
  return text.replace(/\s+/g, " ").slice(0, reasonMax);
}

const slowestMax = 10;

/** Lines of the time spent: each suite, the total, and the slowest files. */
export function timeTable({ times, files }, totalS) {
  const slowest = files.toSorted((a, b) => b.seconds - a.seconds).slice(0, slowestMax);
  const rows = [
    ...times,
    { name: "in all", seconds: totalS },
    ...slowest.map(({ path, seconds }) => ({ name: path, seconds })),
  ];
  return rows.map(({ name, seconds }) => `time  ${String(Math.round(seconds)).padStart(5)} s  ${name}`);
}
