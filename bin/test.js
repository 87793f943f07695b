// `npm test`: set-up, checks, then every suite. The last line is `N passed, N failed`.
//
//   npm test [-- PATTERN...]      only the suites' files that match, without checks
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runChecks } from "./check.js";
import { checkout, progress, SetUpError, setUp } from "./set-up.js";

/** Quick suites first; those that start the whole platform have the machine to themselves. */
const suites = [
  { name: "units and parts", args: ["system", "faults", "conformance"].map((name) => `--exclude=test/${name}/**`) },
  { name: "system", args: ["test/system/", "test/conformance/", "--no-file-parallelism"] },
  { name: "faults", args: ["test/faults/", "--no-file-parallelism"] },
];

try {
  const { node, env } = await setUp();
  await make(node, env);
  const patterns = process.argv.slice(2);
  const results =
    patterns.length > 0
      ? [await runSuite({ name: patterns.join(" "), args: patterns }, node, env)]
      : [await runChecks(env), ...(await inTurn(suites.map((suite) => () => runSuite(suite, node, env))))];
  const passed = results.reduce((sum, result) => sum + result.passed, 0);
  const failed = results.reduce((sum, result) => sum + result.failed, 0);
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
} catch (error) {
  if (!(error instanceof SetUpError)) throw error;
  progress(error.message);
  console.log("0 passed, 1 failed");
  process.exitCode = 1;
}

/** The node image, whose engines the suites run. */
async function make(node, env) {
  const code = await run(node, [join(checkout, "image", "src", "main.ts"), "make", "trixie"], env, [
    "ignore",
    "ignore",
    "inherit",
  ]);
  if (code !== 0) throw new SetUpError("the suites need the node image");
}

async function runSuite(suite, node, env) {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-results-"));
  const file = join(directory, "results.json");
  const vitest = join(checkout, "node_modules", "vitest", "vitest.mjs");
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`];
  try {
    progress(`suite: ${suite.name}`);
    const code = await run(node, [vitest, "run", "--passWithNoTests", ...reporters, ...suite.args], env, [
      "ignore",
      "inherit",
      "inherit",
    ]);
    return count(code, file);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** A file that does not load has no tests to fail, and counts as one failure; so does a vitest that breaks. */
function count(code, file) {
  let results;
  try {
    results = JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return { passed: 0, failed: code === 0 ? 0 : 1 };
  }
  const broken = results.testResults.filter((f) => f.status === "failed" && f.assertionResults.length === 0).length;
  const failed = results.numFailedTests + broken;
  return { passed: results.numPassedTests, failed: code !== 0 && failed === 0 ? 1 : failed };
}

async function inTurn(steps) {
  const results = [];
  for (const step of steps) results.push(await step());
  return results;
}

function run(command, args, env, stdio) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: checkout, env, stdio });
    child.once("error", reject);
    child.once("close", resolve);
  });
}
