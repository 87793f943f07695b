// The suites of `npm test`, one after another.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { createInterface } from "node:readline";
import { stripVTControlCharacters } from "node:util";
import { checkout, progress } from "./set-up.js";

/** Each file has an installation of its own, so two at a time do not meet; what breaks things has the machine to itself. */
const platformFolders = ["system", "conformance", "faults"];

export const suites = [
  { name: "faults", args: ["test/faults/", "--maxWorkers=1"] },
  { name: "system", args: ["test/system/", "test/conformance/", "--maxWorkers=2"] },
  { name: "units", args: [...platformFolders.map((name) => `--exclude=test/${name}/**`), "--maxWorkers=2"] },
];

/** Runs the suites, every line of theirs after the suite's name, and answers what passed and what failed. */
export async function runSuites(chosen, node, env) {
  const results = [];
  for (const suite of chosen) results.push(await runSuite(suite, node, env));
  return {
    passed: results.reduce((sum, { passed }) => sum + passed, 0),
    failures: results.flatMap(({ failures }) => failures),
  };
}

async function runSuite({ name, args }, node, env) {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-results-"));
  const file = join(directory, "results.json");
  const vitest = join(checkout, "node_modules", "vitest", "vitest.mjs");
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`];
  try {
    const startedAt = Date.now();
    const { code, unhandled } = await run(name, node, [vitest, "run", "--passWithNoTests", ...reporters, ...args], env);
    const { passed, failures } = outcome(code, unhandled, file);
    const seconds = Math.round((Date.now() - startedAt) / 1_000);
    progress(`suite ${name}: ${passed} passed, ${failures.length} failed in ${seconds} s`);
    return { passed, failures: failures.map((failure) => `${name} | ${failure}`) };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/**
 * A file that fails without a test that does, as when it cannot begin or end, counts as one failure; so does a vitest that
 * breaks, and an error that no test waited for.
 */
function outcome(code, unhandled, file) {
  let results;
  try {
    results = JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return { passed: 0, failures: code === 0 ? [] : [`vitest ended with ${code} and no results\n${unhandled}`] };
  }
  const failures = results.testResults.filter(({ status }) => status === "failed").flatMap(failuresOf);
  if (code !== 0 && (failures.length === 0 || unhandled !== ""))
    failures.push(`vitest ended with ${code}, after an error outside every test\n${unhandled}`);
  return { passed: results.numPassedTests, failures };
}

function failuresOf({ name, message, assertionResults }) {
  const path = relative(checkout, name);
  const tests = assertionResults.filter(({ status }) => status === "failed");
  if (tests.length === 0) return [`${path}\n${beginning(message)}`];
  return tests.map(
    ({ fullName, failureMessages }) => `${path} > ${fullName}\n${beginning(failureMessages.join("\n"))}`,
  );
}

/** What went wrong and where: a log that keeps only its end must still say so. */
function beginning(message) {
  return message
    .split("\n")
    .filter((line) => !line.includes("node_modules"))
    .slice(0, 12)
    .map((line) => `    ${line.slice(0, 300)}`)
    .join("\n");
}

/** Answers how it ended, and the beginning of what it told of errors outside of tests, which no report has. */
function run(name, command, args, env) {
  const unhandled = [];
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: checkout, env, stdio: ["ignore", "pipe", "pipe"] });
    for (const [from, to] of [
      [child.stdout, process.stdout],
      [child.stderr, process.stderr],
    ]) {
      createInterface({ input: from }).on("line", (line) => {
        to.write(line === "" ? "\n" : `${name} | ${line}\n`);
        const text = stripVTControlCharacters(line);
        if (unhandled.length > 0 || /Unhandled (Error|Rejection)/.test(text)) unhandled.push(text);
      });
    }
    child.once("error", reject);
    child.once("close", (code) => {
      resolve({ code, unhandled: unhandled.length === 0 ? "" : beginning(unhandled.join("\n")) });
    });
  });
}
