import type { CliDeps } from "./context.ts";
import { exitCodeOf, messageOf } from "./exit-code.ts";
import { createProgram } from "./program.ts";

/** Runs one command line, without node and script; resolves to the exit code. */
export async function runCli(args: readonly string[], deps: CliDeps): Promise<number> {
  try {
    await createProgram(deps).parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    const message = messageOf(error);
    if (message !== undefined) deps.stderr.write(`${message}\n`);
    return exitCodeOf(error);
  }
}
