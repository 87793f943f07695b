import { type Command, Option } from "commander";
import type { GlobalFlags } from "./context.ts";

/** A global flag that is accepted after the name of a command. */
class InheritedFlag extends Option {}

/** A flag that a command without questions accepts and that changes nothing. */
class IgnoredFlag extends Option {}

/**
 * Accepts the root's flags after each command too. If a verb has a flag of the same name, the flag is the verb's after
 * the verb and global before it. --version is accepted at the root only.
 */
export function addGlobalFlags(root: Command): void {
  root.enablePositionalOptions();
  for (const command of descendantsOf(root)) {
    if (command.commands.length > 0) command.enablePositionalOptions();
    for (const { flags, description, argChoices, long } of root.options) {
      if (long === "--version" || command.options.some((own) => own.long === long)) continue;
      const option = new InheritedFlag(flags, description).hideHelp();
      command.addOption(argChoices === undefined ? option : option.choices(argChoices));
    }
    // Scripts and fingers add it to every change.
    if (command.commands.length === 0 && !command.options.some(({ long }) => long === "--yes"))
      command.addOption(new IgnoredFlag("--yes", "the command asks nothing").hideHelp());
  }
}

/** The values of global flags, wherever they stand; the last one wins. */
export function globalFlagsOf(command: Command): GlobalFlags {
  const { json, ...flags } = valuesOf(command);
  return json === true ? { ...flags, output: "json" } : flags;
}

function valuesOf(command: Command): GlobalFlags & { readonly json?: boolean } {
  const { parent } = command;
  if (parent === null) return command.opts<GlobalFlags & { readonly json?: boolean }>();
  const here = inheritedNames(command)
    .filter((name) => command.getOptionValueSource(name) !== undefined)
    .map((name) => [name, command.getOptionValue(name)] as const);
  return { ...valuesOf(parent), ...Object.fromEntries(here) };
}

/** The values of a command's own flags, without the global ones: some commands send all their flags. */
export function ownFlagsOf(command: Command): Readonly<Record<string, unknown>> {
  const ignored = command.options.filter((option) => option instanceof IgnoredFlag).map((each) => each.attributeName());
  const others = [...inheritedNames(command), ...ignored];
  return Object.fromEntries(Object.entries(command.opts()).filter(([name]) => !others.includes(name)));
}

function inheritedNames(command: Command): readonly string[] {
  return command.options.filter((option) => option instanceof InheritedFlag).map((option) => option.attributeName());
}

function descendantsOf(command: Command): readonly Command[] {
  return command.commands.flatMap((each) => [each, ...descendantsOf(each)]);
}
