// `npm run check`: everything that can be said about the code without running it.
import { spawn } from "node:child_process";
import { pathToFileURL } from "node:url";
import { checks } from "./checks.js";
import { checkout, progress, SetUpError, setUp } from "./set-up.js";

/** Runs every check, prints a line for each, and answers how many passed and failed. */
export async function runChecks(env) {
  const tools = { run: (command, args) => output(command, args, env) };
  let failed = 0;
  for (const [name, check] of checks) {
    try {
      const seen = await check(tools);
      if (!(seen > 0)) throw new Error("it saw no files");
      console.log(`check  ok      ${String(name)} (${seen})`);
    } catch (error) {
      failed += 1;
      console.log(`check  FAILED  ${String(name)}\n${error.message}`);
    }
  }
  return { passed: checks.length - failed, failed };
}

/** What the command prints; throws with it when the command fails. */
function output(command, args, env) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: checkout, env, stdio: ["ignore", "pipe", "pipe"] });
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (chunk) => (text += chunk));
    child.stderr.setEncoding("utf8").on("data", (chunk) => (text += chunk));
    child.once("error", reject);
    child.once("close", (code) => {
      if (code === 0) resolve(text);
      else reject(new Error(text.trim() === "" ? `${command} ended with ${code}` : text.trim()));
    });
  });
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
