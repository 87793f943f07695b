#!/usr/bin/env node
// The `holdfast` command and `npm start`: sets up what is missing, then runs the real program under the pinned Node.
import { spawn } from "node:child_process";
import { constants } from "node:os";
import { join } from "node:path";
import { checkout, progress, SetUpError, setUp } from "./set-up.js";

/** Commands of the local installation; everything else is the client. */
const localCommands = new Set(["up", "host", "clean"]);

try {
  const args = process.argv.slice(2);
  const { node, env } = await setUp();
  if (localCommands.has(args[0])) {
    forward(node, [join(checkout, "local", "src", "main.ts"), ...args], env);
  } else {
    forward(node, [join(checkout, "sdk", "src", "cli", "main.ts"), ...args], env);
  }
} catch (error) {
  if (!(error instanceof SetUpError)) throw error;
  progress(error.message);
  process.exitCode = 1;
}

/**
 * Becomes the program, as far as Node 20 can: same terminal, same signals, same exit code. The channel tells the program
 * when this process is gone, whatever ended it.
 */
function forward(node, args, env) {
  const child = spawn(node, args, { env, stdio: ["inherit", "inherit", "inherit", "ipc"] });
  // A terminal sends Ctrl-C to both; the program decides when to end.
  process.on("SIGINT", () => child.kill("SIGINT"));
  process.on("SIGTERM", () => child.kill("SIGTERM"));
  child.once("error", (error) => {
    progress(error.message);
    process.exit(1);
  });
  child.once("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
}
