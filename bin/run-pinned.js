// Runs a program of the checkout under the pinned Node, after set-up; this process ends with its exit code.
import { spawn } from "node:child_process";
import { checkout, progress, SetUpError, setUp } from "./set-up.js";

/** `args` are Node's own. Ctrl-C reaches the program too, which decides when to end. */
export async function runPinned(args, environment = {}) {
  try {
    const { node, env } = await setUp();
    const child = spawn(node, args, { env: { ...env, ...environment }, cwd: checkout, stdio: "inherit" });
    process.on("SIGINT", () => child.kill("SIGINT"));
    child.once("exit", (code) => {
      process.exitCode = code ?? 1;
    });
  } catch (error) {
    if (!(error instanceof SetUpError)) throw error;
    progress(error.message);
    process.exitCode = 1;
  }
}
