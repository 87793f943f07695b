// `npm test`: set-up, checks, then every suite, and at the end what was flaky, what is in quarantine and each failure whole.
// The last line is `N passed, N failed`.
//
//   npm test [-- PATTERN...]      only the suites' files that match, without checks
import { spawn } from "node:child_process";
import { join } from "node:path";
import { runChecks } from "./check.js";
import { checkout, progress, SetUpError, setUp } from "./set-up.js";
import { runSuites, suites } from "./suites.js";

try {
  const { node, env } = await setUp();
  const patterns = process.argv.slice(2);
  // The checks need no image, and much of its making is waiting for the network and the disk.
  const image = makeImage(node, env);
  const checked = patterns.length > 0 ? { passed: 0, failed: 0 } : await runChecks(env);
  await image;
  const tested = await runSuites(patterns.length > 0 ? [{ name: "chosen", args: patterns }] : suites, node, env);
  const failed = checked.failed + tested.failures.length;
  for (const failure of tested.failures) console.log(`failed: ${failure}`);
  for (const test of tested.quarantined) console.log(`quarantined: ${test}`);
  for (const test of tested.flaky) console.log(`flaky: ${test}`);
  if (tested.logs !== undefined) console.log(`logs of files that were red: ${tested.logs}`);
  console.log(`${checked.passed + tested.passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
} catch (error) {
  if (!(error instanceof SetUpError)) throw error;
  progress(error.message);
  console.log("0 passed, 1 failed");
  process.exitCode = 1;
}

/** The node image, whose engines the suites run. */
function makeImage(node, env) {
  const made = new Promise((resolve, reject) => {
    const args = [join(checkout, "image", "src", "main.ts"), "make", "trixie"];
    const child = spawn(node, args, { cwd: checkout, env, stdio: ["ignore", "ignore", "inherit"] });
    child.once("error", reject);
    child.once("close", (code) => {
      if (code === 0) resolve();
      else reject(new SetUpError("the suites need the node image"));
    });
  });
  // Whoever awaits it later hears of it then.
  made.catch(() => undefined);
  return made;
}
