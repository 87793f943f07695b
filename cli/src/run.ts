import type { CliDeps } from "./context.ts";
import { exitCodeOf, messageOf } from "./exit-code.ts";
import { nounGroups } from "./nouns.ts";
import { printableLines } from "./printable.ts";
import { createProgram } from "./program.ts";

/** Runs one command line (without node and script) and returns the exit code. */
export async function runCli(args: readonly string[], deps: CliDeps, groups = nounGroups): Promise<number> {
  // Called by the completion scripts of shells; not a public command.
  if (args[0] === "complete" && args[1] === "--") {
    const { printCompletions } = await import("./completion/complete.ts");
    return printCompletions(args.slice(2), deps);
  }
  try {
    const program = await createProgram(args, deps, groups);
    await program.parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    const message = messageOf(error);
    if (message !== undefined) deps.stderr.write(`${printableLines(message)}\n`);
    return exitCodeOf(error);
  }
}
