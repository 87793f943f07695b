import type { Argument, Command, Option } from "commander";
import type { CliCommand } from "../command.ts";
import { addVerbs } from "../program.ts";
import { type Names, type Suggestion, suggestNames } from "./names.ts";

/**
 * Candidates for the last word. The shell drops those without that word as their prefix. `openNames` is called when
 * names of live objects are needed.
 */
export async function complete(
  root: CliCommand,
  words: readonly string[],
  openNames: () => Promise<Names>,
): Promise<Suggestion[]> {
  const before = words.slice(0, -1);
  const last = words.at(-1) ?? "";
  // A flag without its value would be a fault of the command line.
  const { command, operands, rest } = await descend(
    root,
    before.at(-1)?.startsWith("-") ? before.slice(0, -1) : before,
  );

  const asked = optionBefore(command, before.at(-1));
  if (asked !== undefined) return valuesOf(asked.argChoices, asked.attributeName(), rest, openNames);
  if (last.startsWith("-")) return flagsOf(command);
  if (command.commands.length > 0 && rest.length === 0) {
    return command
      .createHelp()
      .visibleCommands(command)
      .map((each) => ({ value: each.name(), about: each.description() }));
  }
  const argument = argumentAt(command, rest.length);
  if (argument === undefined || operands.length === 0) return [];
  return valuesOf(argument.argChoices, argument.name(), rest, openNames);
}

/** Goes down the nouns and verbs that the words name; the operands that are left belong to the last one. */
async function descend(root: CliCommand, words: readonly string[]) {
  const { operands } = root.parseOptions([...words]);
  let command: Command = (await addVerbs(root, operands[0])) ?? root;
  let depth = command === root ? 0 : 1;
  for (; depth < operands.length; depth += 1) {
    const next = command.commands.find((each) => each.name() === operands[depth]);
    if (next === undefined || command === root) break;
    command = next;
  }
  // Values of the command's own flags are not operands.
  const rest = command.parseOptions(words.slice(positionAfter(words, operands.slice(0, depth)))).operands;
  return { command, operands, rest };
}

function positionAfter(words: readonly string[], names: readonly string[]): number {
  let position = 0;
  for (const name of names) position = words.indexOf(name, position) + 1;
  return position;
}

/** The flag that the word before the cursor is, if it wants a value. */
function optionBefore(command: Command, word: string | undefined): Option | undefined {
  if (word === undefined || !word.startsWith("-")) return undefined;
  return allOptions(command).find(
    (option) => (option.required || option.optional) && (option.long === word || option.short === word),
  );
}

function flagsOf(command: Command): Suggestion[] {
  return allOptions(command)
    .filter(({ hidden }) => !hidden)
    .map((option) => ({ value: option.long ?? option.flags, about: option.description }));
}

function allOptions(command: Command): Option[] {
  const help = command.createHelp();
  return [...help.visibleOptions(command), ...ancestorsOf(command).flatMap((each) => each.options)];
}

function ancestorsOf({ parent }: Command): Command[] {
  return parent === null ? [] : [parent, ...ancestorsOf(parent)];
}

function argumentAt({ registeredArguments: all }: Command, index: number): Argument | undefined {
  const last = all.at(-1);
  return all[index] ?? (last?.variadic === true ? last : undefined);
}

async function valuesOf(
  choices: readonly string[] | undefined,
  name: string,
  operands: readonly string[],
  openNames: () => Promise<Names>,
): Promise<Suggestion[]> {
  if (choices !== undefined) return choices.map((value) => ({ value, about: "" }));
  return suggestNames(name, operands, openNames);
}
