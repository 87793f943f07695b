// `npm test`: set-up, checks, then the quick lane of tests; `npm run test:long`: the long lane, without checks. The end
// prints flaky tests, quarantined tests, tests that this host cannot run, and each failure in full. The last line is
// `N passed, N failed`. With CI set, tests that every host must run, and that this one cannot, count as failed.
//
//   npm test [-- PART...]            only files of either lane with one of the parts in their path, without checks
//   npm run test:long [-- PART...]   only such files of the long lane
import { spawn } from "node:child_process";
import { join } from "node:path";
import { runChecks } from "./check.js";
import { recordDurations } from "./durations.js";
import { checkout, progress, SetUpError, setUp } from "./set-up.js";
import { oneLine, runSuites, skippedFaults, suitesOf, timeTable } from "./suites.js";

const parts = process.argv.slice(2).filter((argument) => argument !== "--long");
const isLong = process.argv.includes("--long");
const isFullRun = !isLong && parts.length === 0;

try {
  const { node, env } = await setUp();
  // The checks need no image, and making it mostly waits for network and disk.
  const image = makeImage(node, env);
  const checked = isFullRun ? await runChecks(env) : { passed: 0, failed: 0 };
  if (checked.failed > 0) {
    image.end();
    finish(checked.passed, checked.failed);
  } else {
    await image.finished;
    const suites = suitesOf(isLong ? "long" : isFullRun ? "quick" : undefined, parts);
    if (suites.length === 0) throw new SetUpError(`No path of a test file contains ${parts.join(" or ")}.`);
    const tested = await runSuites(suites, node, env);
    recordDurations(tested.files);
    report(tested);
    finish(checked.passed + tested.passed, tested.failures.length + skippedFaults(tested.skipped, process.env));
  }
} catch (error) {
  if (!(error instanceof SetUpError)) throw error;
  progress(error.message);
  finish(0, 1);
}

function report(tested) {
  for (const line of timeTable(tested, process.uptime())) console.log(line);
  for (const failure of tested.failures) console.log(`failed: ${failure}`);
  for (const test of tested.quarantined) console.log(`quarantined: ${test}`);
  for (const { tests, reason } of tested.skipped) console.log(`skipped: ${tests}: ${oneLine(reason)}`);
  for (const test of tested.flaky) console.log(`flaky: ${test}`);
  if (tested.logs !== undefined) console.log(`logs of files that were red: ${tested.logs}`);
}

function finish(passed, failed) {
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}

/** The node image with the engines of the suites. */
function makeImage(node, env) {
  const args = [join(checkout, "image", "src", "main.ts"), "make", "trixie"];
  const child = spawn(node, args, { cwd: checkout, env, stdio: ["ignore", "ignore", "inherit"] });
  const finished = new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      if (code === 0) resolve();
      else reject(new SetUpError("The node image could not be built, which the suites need."));
    });
  });
  // A later await of the promise gets the rejection.
  finished.catch(() => undefined);
  return { finished, end: () => child.kill() };
}
