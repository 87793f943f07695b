import { type Command, Option } from "commander";
import type { GlobalFlags } from "./context.ts";

/** A flag of every command where it stands behind the name of one. */
class FlagOfAll extends Option {}

/**
 * Lets the flags of the root stand behind each command too. A verb that has one of the same name keeps it: behind the verb it is the
 * verb's, before it every command's. Only the root tells the version.
 */
export function offerFlags(root: Command): void {
  root.enablePositionalOptions();
  for (const command of below(root)) {
    if (command.commands.length > 0) command.enablePositionalOptions();
    for (const { flags, description, argChoices, long } of root.options) {
      if (long === "--version" || command.options.some((own) => own.long === long)) continue;
      const option = new FlagOfAll(flags, description).hideHelp();
      command.addOption(argChoices === undefined ? option : option.choices(argChoices));
    }
  }
}

/** What was given of them, wherever it stood; the one nearest to the end counts. */
export function givenFlags(command: Command): GlobalFlags {
  const { parent } = command;
  if (parent === null) return command.opts<GlobalFlags>();
  const names = command.options.filter((option) => option instanceof FlagOfAll).map((option) => option.attributeName());
  const here = names
    .filter((name) => command.getOptionValueSource(name) !== undefined)
    .map((name) => [name, command.getOptionValue(name)] as const);
  return { ...givenFlags(parent), ...Object.fromEntries(here) };
}

function below(command: Command): readonly Command[] {
  return command.commands.flatMap((each) => [each, ...below(each)]);
}
