import type { CliDeps } from "./context.ts";
import { exitCodeOf, messageOf } from "./exit-code.ts";
import { nounGroups } from "./nouns.ts";
import { createProgram } from "./program.ts";

/** Runs one command line, without node and script; resolves to the exit code. */
export async function runCli(args: readonly string[], deps: CliDeps, groups = nounGroups): Promise<number> {
  // Called by the shells' completion scripts; not a command for people.
  if (args[0] === "complete" && args[1] === "--") {
    const { answerShell } = await import("./completion/answer-shell.ts");
    return answerShell(args.slice(2), deps);
  }
  try {
    const program = await createProgram(args, deps, groups);
    await program.parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    const message = messageOf(error);
    if (message !== undefined) deps.stderr.write(`${message}\n`);
    return exitCodeOf(error);
  }
}
