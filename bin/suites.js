// The suites of `npm test`, one after another, and every file that was red again, alone.
import { existsSync, mkdtempSync, readdirSync, rmdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createIsQuarantined } from "./quarantine.js";
import { checkout, progress } from "./set-up.js";
import { faultsOf, readable, verdictOf } from "./verdict.js";
import { runVitest } from "./vitest-run.js";

/** Each file has an installation of its own, so two at a time do not meet; what breaks things has the machine to itself. */
const platformFolders = ["system", "conformance", "faults"];

export const suites = [
  { name: "faults", args: ["test/faults/", "--maxWorkers=1"] },
  { name: "system", args: ["test/system/", "test/conformance/", "--maxWorkers=2"] },
  { name: "units", args: [...platformFolders.map((name) => `--exclude=test/${name}/**`), "--maxWorkers=2"] },
];

/** How often a red file runs again. */
const again = 2;
/** When more files are red than this, it is not for chance, and another look at each would only take time. */
const mostAgain = 25;

/**
 * Runs the suites. A file that was red runs again afterwards with nothing beside it; green then, it is only told as flaky.
 * Answers how many tests passed, what failed, was flaky and is in quarantine, and the folder that keeps logs of files that
 * were red, if there are any.
 */
export async function runSuites(chosen, node, env, { root = checkout, isQuarantined = createIsQuarantined() } = {}) {
  const logs = mkdtempSync(join(tmpdir(), "holdfast-failed-"));
  const options = { node, env: { ...env, HOLDFAST_TEST_LOGS: logs }, root };
  const runs = new Map();
  const failures = [];

  async function run(name, args) {
    const { files, fault } = await runVitest(name, args, options);
    for (const file of files) runs.set(file.path, [...(runs.get(file.path) ?? []), file]);
    if (fault !== undefined) failures.push(`${name}\n${readable(fault)}`);
    return files;
  }

  const isRed = (file) => faultsOf(file, isQuarantined).length > 0;
  const everRed = new Set();
  for (const { name, args } of chosen) {
    const startedAt = Date.now();
    const files = await run(name, args);
    const red = files.filter(isRed);
    for (const { path } of red) everRed.add(path);
    progress(
      `suite ${name}: ${files.length} files, ${red.length} red, ${Math.round((Date.now() - startedAt) / 1_000)} s`,
    );
  }
  if (everRed.size > mostAgain) progress(`${everRed.size} files are red: none is run again`);
  else for (const path of everRed) await runAgain(path);

  async function runAgain(path) {
    for (let n = 1; n <= again && isRed(runs.get(path).at(-1)); n += 1) {
      progress(`${path} was red, and runs alone for the ${n === 1 ? "second" : "third"} time`);
      const ended = await run("again", [join(root, path), "--maxWorkers=1"]);
      // Vitest did not get as far as the file.
      if (ended.length === 0) return;
    }
  }

  keepOnly(logs, everRed);
  const verdicts = [...runs.values()].map((each) => verdictOf(each, isQuarantined));
  return {
    passed: verdicts.reduce((sum, { passed }) => sum + passed, 0),
    failures: [...failures, ...verdicts.flatMap((verdict) => verdict.failures)],
    flaky: verdicts.flatMap(({ flaky }) => flaky),
    quarantined: verdicts.flatMap(({ quarantined }) => quarantined),
    logs: existsSync(logs) ? logs : undefined,
  };
}

/** Logs are kept a folder a file of tests, named after its path. The whole goes when nothing of it is to be kept. */
function keepOnly(logs, paths) {
  const kept = new Set([...paths].map((path) => path.replaceAll("/", "_")));
  for (const name of readdirSync(logs)) if (!kept.has(name)) rmSync(join(logs, name), { recursive: true });
  if (readdirSync(logs).length === 0) rmdirSync(logs);
}
