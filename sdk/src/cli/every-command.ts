import type { CliCommand } from "./command.ts";
import type { CliDeps } from "./context.ts";
import { nouns } from "./nouns.ts";
import { addVerbs, createRoot } from "./program.ts";

const silent = { write: () => undefined };
const nobody = () => Promise.reject(new Error("nobody is asked"));

/** Of a command that is looked at, and tells nobody anything. */
export const silentDeps: CliDeps = {
  environment: {},
  defaultDirectory: "",
  signal: new AbortController().signal,
  stdout: silent,
  stderr: silent,
  terminal: { isInteractive: false, ask: nobody, askSecret: nobody, confirm: async () => false },
};

/** The command with all that it can, to be looked at and not to be run. */
export async function everyCommand(): Promise<CliCommand> {
  const root = createRoot(silentDeps);
  for (const { name } of nouns) await addVerbs(root, name);
  return root;
}

/** The commands at or below it that have an action. */
export function leavesOf(command: CliCommand): CliCommand[] {
  return command.commands.length === 0 ? [command] : (command.commands as CliCommand[]).flatMap(leavesOf);
}
