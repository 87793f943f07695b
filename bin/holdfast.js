#!/usr/bin/env node
// The `holdfast` command and `npm start`: installs missing software, then runs the real program under the pinned Node.
import { spawn } from "node:child_process";
import { constants } from "node:os";
import { basename, join, relative } from "node:path";
import { checkout, progress, SetUpError, setUp } from "./set-up.js";

/** Commands of this host, by their program; every other command is the client's. */
const local = join(checkout, "local", "src", "main.ts");
const localCommands = new Map([
  ["up", (args) => [local, ...args]],
  ["start", ([, ...args]) => [local, "up", ...args]],
  ["host", (args) => [local, ...args]],
  ["clean", (args) => [local, ...args]],
  ["dns", (args) => [local, ...args]],
  ["install", (args) => [local, ...args]],
  ["upgrade", (args) => [local, ...args]],
  ["uninstall", (args) => [local, ...args]],
  ["images", ([, ...args]) => [join(checkout, "image", "src", "main.ts"), ...args]],
]);

try {
  const args = process.argv.slice(2);
  const { node, env } = await setUp();
  env.HOLDFAST_PROGRAM ??= asTyped(process.argv[1]);
  const command = localCommands.get(args[0]) ?? (() => [join(checkout, "cli", "src", "main.ts"), ...args]);
  forward(node, command(args), env);
} catch (error) {
  if (!(error instanceof SetUpError)) throw error;
  progress(error.message);
  process.exitCode = 1;
}

/** The command line that runs this command from the current directory, for lines to paste. */
function asTyped(path) {
  if (basename(path) === "holdfast") return "holdfast";
  const below = relative(process.cwd(), path);
  return below.startsWith("..") ? path : `./${below}`;
}

/**
 * Runs the program in place of this process, as far as Node 20 can: same terminal, same signals, same exit code. The
 * channel tells the program when this process has ended for any reason.
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
