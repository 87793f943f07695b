import { existsSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Interrupted } from "./exit-code.ts";
import { runCli } from "./run.ts";
import { createTerminal } from "./terminal.ts";

const ending = new AbortController();
// The terminal and the launcher may both send SIGINT. A started client such as psql handles it itself.
process.on("SIGINT", () => ending.abort(new Interrupted()));
// `disconnect` means that the launcher, at the other end of the channel, has ended.
for (const event of ["SIGTERM", "SIGHUP", "SIGQUIT", "disconnect"])
  process.on(event, () => ending.abort(new Interrupted("terminated", { endsChildren: true })));
// EPIPE is not a failure: a reader such as head has read enough.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));

process.exitCode = await runCli(process.argv.slice(2), {
  environment: process.env,
  defaultDirectory: installationAbove(process.cwd()) ?? ownInstallation(),
  signal: ending.signal,
  stdout: process.stdout,
  stderr: process.stderr,
  terminal: createTerminal(process.stdin, process.stderr),
});
// The channel to the launcher and an open standard input would keep this process alive.
if (process.connected) process.disconnect();
process.stdin.unref?.();

/** `.holdfast` in the checkout; in an installed release it is a link to the data directory. */
function ownInstallation(): string {
  const path = fileURLToPath(new URL("../../.holdfast", import.meta.url));
  return existsSync(path) ? realpathSync(path) : path;
}

/** The local installation of this directory, or of one above it. */
function installationAbove(start: string): string | undefined {
  for (let directory = start; ; directory = dirname(directory)) {
    const candidate = join(directory, ".holdfast");
    if (existsSync(join(candidate, "admin.json"))) return candidate;
    if (directory === dirname(directory)) return undefined;
  }
}
