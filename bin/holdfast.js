#!/usr/bin/env node
// The `holdfast` command and `npm start`: sets up what is missing, then runs the real program under the pinned Node.
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { constants } from "node:os";
import { dirname, join, resolve } from "node:path";
import { checkout, progress, SetUpError, setUp } from "./set-up.js";

/** Commands of the local installation; everything else is the client. */
const localCommands = new Set(["up", "clean"]);

try {
  const args = process.argv.slice(2);
  const { node, env } = await setUp();
  if (localCommands.has(args[0])) {
    forward(node, [join(checkout, "local", "src", "main.ts"), ...args], env);
  } else {
    forward(node, [join(checkout, "sdk", "src", "cli", "main.ts"), ...args], { ...env, ...installationOf() });
  }
} catch (error) {
  if (!(error instanceof SetUpError)) throw error;
  progress(error.message);
  process.exitCode = 1;
}

/** Where the client finds its installation, and whom it trusts before Node opens its first connection. */
function installationOf() {
  const directory = process.env.HOLDFAST_DATA ?? findUpwards(process.cwd()) ?? join(checkout, ".holdfast");
  const admin = join(directory, "admin.json");
  if (!existsSync(admin)) return { HOLDFAST_DATA: directory };
  const { ca_file: authority } = JSON.parse(readFileSync(admin, "utf8"));
  return { HOLDFAST_DATA: directory, NODE_EXTRA_CA_CERTS: authority };
}

function findUpwards(start) {
  for (let directory = resolve(start); ; directory = dirname(directory)) {
    const candidate = join(directory, ".holdfast");
    if (existsSync(join(candidate, "admin.json"))) return candidate;
    if (directory === dirname(directory)) return undefined;
  }
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
