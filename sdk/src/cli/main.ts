import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Interrupted } from "./exit-code.ts";
import { runCli } from "./run.ts";
import { createTerminal } from "./terminal.ts";

const ending = new AbortController();
// The terminal and the launcher may both send it, and a started client keeps it for itself.
process.on("SIGINT", () => ending.abort(new Interrupted()));
// The launcher holds the other end of the channel: without the launcher, nothing waits for this process.
for (const event of ["SIGTERM", "SIGHUP", "SIGQUIT", "disconnect"])
  process.on(event, () => ending.abort(new Interrupted("ended from outside", { endsChildren: true })));
// A reader that has enough, such as head, is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));

process.exitCode = await runCli(process.argv.slice(2), {
  environment: process.env,
  defaultDirectory: installationAbove(process.cwd()) ?? fileURLToPath(new URL("../../../.holdfast", import.meta.url)),
  signal: ending.signal,
  stdout: process.stdout,
  stderr: process.stderr,
  terminal: createTerminal(process.stdin, process.stderr),
});
// The channel to the launcher, and a standard input that stays open, would keep this process alive.
if (process.connected) process.disconnect();
process.stdin.unref?.();

/** The local installation of this directory, or of one above it. */
function installationAbove(start: string): string | undefined {
  for (let directory = start; ; directory = dirname(directory)) {
    const candidate = join(directory, ".holdfast");
    if (existsSync(join(candidate, "admin.json"))) return candidate;
    if (directory === dirname(directory)) return undefined;
  }
}
