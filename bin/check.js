// `npm run check`: the static checks of the code.
import { pathToFileURL } from "node:url";
import { checks } from "./checks.js";
import { progress, SetUpError, setUp } from "./set-up.js";
import { toolsFor } from "./tools.js";

/** Runs every check and prints a line for each; returns the numbers of passed and failed ones. */
export async function runChecks(env) {
  const tools = toolsFor(env);
  let failed = 0;
  for (const [name, check] of checks) {
    try {
      const fileCount = await check(tools);
      if (!(fileCount > 0)) throw new Error("The check read no files.");
      console.log(`check  ok      ${String(name)} (${fileCount})`);
    } catch (error) {
      failed += 1;
      console.log(`check  FAILED  ${String(name)}\n${error.message}`);
    }
  }
  return { passed: checks.length - failed, failed };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  try {
    const { env } = await setUp();
    const { failed } = await runChecks(env);
    process.exitCode = failed === 0 ? 0 : 1;
  } catch (error) {
    if (!(error instanceof SetUpError)) throw error;
    progress(error.message);
    process.exitCode = 1;
  }
}
