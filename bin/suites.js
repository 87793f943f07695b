// The suites of `npm test`, one after another.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { checkout, progress } from "./set-up.js";

/** Each file has an installation of its own, so two at a time do not meet; what breaks things has the machine to itself. */
const platformFolders = ["system", "conformance", "faults"];

export const suites = [
  { name: "faults", args: ["test/faults/", "--maxWorkers=1"] },
  { name: "system", args: ["test/system/", "test/conformance/", "--maxWorkers=2"] },
  { name: "units", args: [...platformFolders.map((name) => `--exclude=test/${name}/**`), "--maxWorkers=2"] },
];

/** Runs the suites, every line of theirs after the suite's name, and answers what passed and failed. */
export async function runSuites(chosen, node, env) {
  const results = [];
  for (const suite of chosen) results.push(await runSuite(suite, node, env));
  return {
    passed: results.reduce((sum, { passed }) => sum + passed, 0),
    failed: results.reduce((sum, { failed }) => sum + failed, 0),
  };
}

async function runSuite({ name, args }, node, env) {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-results-"));
  const file = join(directory, "results.json");
  const vitest = join(checkout, "node_modules", "vitest", "vitest.mjs");
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`];
  try {
    const startedAt = Date.now();
    const code = await run(name, node, [vitest, "run", "--passWithNoTests", ...reporters, ...args], env);
    const result = count(code, file);
    const seconds = Math.round((Date.now() - startedAt) / 1_000);
    progress(`suite ${name}: ${result.passed} passed, ${result.failed} failed in ${seconds} s`);
    return result;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** A file that fails without a test that does, as when it cannot begin, counts as one failure; so does a vitest that breaks. */
function count(code, file) {
  let results;
  try {
    results = JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return { passed: 0, failed: code === 0 ? 0 : 1 };
  }
  const broken = results.testResults.filter(
    (file) => file.status === "failed" && file.assertionResults.every(({ status }) => status !== "failed"),
  ).length;
  const failed = results.numFailedTests + broken;
  return { passed: results.numPassedTests, failed: code !== 0 && failed === 0 ? 1 : failed };
}

function run(name, command, args, env) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: checkout, env, stdio: ["ignore", "pipe", "pipe"] });
    for (const [from, to] of [
      [child.stdout, process.stdout],
      [child.stderr, process.stderr],
    ]) {
      createInterface({ input: from }).on("line", (line) => to.write(line === "" ? "\n" : `${name} | ${line}\n`));
    }
    child.once("error", reject);
    child.once("close", resolve);
  });
}
