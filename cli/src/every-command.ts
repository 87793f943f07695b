import type { CliCommand } from "./command.ts";
import type { CliDeps } from "./context.ts";
import { nouns } from "./nouns.ts";
import { addVerbs, createRoot } from "./program.ts";

const silent = { write: () => undefined };
const noTerminal = () => Promise.reject(new Error("there is no terminal"));

/** Dependencies of a command that is inspected and not run. */
export const silentDeps: CliDeps = {
  environment: {},
  defaultDirectory: "",
  signal: new AbortController().signal,
  stdout: silent,
  stderr: silent,
  terminal: {
    isInteractive: false,
    ask: noTerminal,
    askSecret: noTerminal,
    readAll: noTerminal,
    confirm: async () => false,
  },
};

/** The command with all verbs of all nouns, for inspection. */
export async function everyCommand(): Promise<CliCommand> {
  const root = createRoot(silentDeps);
  for (const { name } of nouns) await addVerbs(root, name);
  return root;
}

/** The command itself or its subcommands that have an action. */
export function leavesOf(command: CliCommand): CliCommand[] {
  return command.commands.length === 0 ? [command] : (command.commands as CliCommand[]).flatMap(leavesOf);
}

/** Words of a command without the program's name, such as `services` and `list`. */
export function pathOf(command: CliCommand): string[] {
  return command.parent === null ? [] : [...pathOf(command.parent as CliCommand), command.name()];
}
