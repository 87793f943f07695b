import { createInterface } from "node:readline/promises";
import { fileURLToPath } from "node:url";
import { Terminated } from "./exit-code.ts";
import { runCli } from "./run.ts";

const interrupted = new AbortController();
// The terminal and the launcher may both send it, and a started client keeps it for itself.
process.on("SIGINT", () => interrupted.abort());
for (const signal of ["SIGTERM", "SIGHUP"] as const)
  process.on(signal, () => interrupted.abort(new Terminated("terminated")));
// A reader that has enough, such as head, is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));

process.exitCode = await runCli(process.argv.slice(2), {
  environment: process.env,
  defaultDirectory: fileURLToPath(new URL("../../../.holdfast", import.meta.url)),
  signal: interrupted.signal,
  stdout: process.stdout,
  stderr: process.stderr,
  async confirm(question) {
    if (!process.stdin.isTTY) return false;
    const lines = createInterface({ input: process.stdin, output: process.stderr });
    try {
      return /^y(es)?$/i.test((await lines.question(`${question} [y/N] `)).trim());
    } finally {
      lines.close();
    }
  },
});
// The channel to the launcher would keep this process alive.
if (process.connected) process.disconnect();
