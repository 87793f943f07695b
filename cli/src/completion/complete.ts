import type { Argument, Command, Option } from "commander";
import { readProfiles } from "@holdfast/sdk/node/profiles.ts";
import type { CliCommand } from "../command.ts";
import type { CliDeps, GlobalFlags } from "../context.ts";
import { addVerbs, createRoot } from "../program.ts";
import { printable } from "../printable.ts";
import { type Names, type Suggestion, suggestNames } from "./names.ts";

/** Limit on the time for suggestions: a user at a prompt does not wait longer. */
const timeoutMs = 10_000;

/**
 * Writes the candidates for the last word of a command line, one per line: word, tab, short description. Errors produce
 * no candidates, because a shell cannot show them. Returns the exit code.
 */
export async function printCompletions(words: readonly string[], deps: CliDeps): Promise<number> {
  const discard = { write: () => undefined };
  const signal = AbortSignal.any([deps.signal, AbortSignal.timeout(timeoutMs)]);
  const silent = { ...deps, stdout: discard, stderr: discard, signal };
  const root = createRoot(silent);
  try {
    const suggestions = await complete(root, words, async () => {
      const { openContext } = await import("../context.ts");
      const context = await openContext(root.opts<GlobalFlags>(), silent);
      return {
        // A getter, because names of profiles need no credential.
        get client() {
          return context.client;
        },
        profiles: () => Object.keys(readProfiles(deps.environment).profiles),
      };
    });
    for (const { value, about } of suggestions) deps.stdout.write(`${value}\t${printable(about)}\n`);
    return 0;
  } catch {
    return 1;
  }
}

/**
 * The candidates for the last word. The shell drops those that do not start with it. `openNames` is called when names
 * of existing objects are needed.
 */
async function complete(
  root: CliCommand,
  words: readonly string[],
  openNames: () => Promise<Names>,
): Promise<Suggestion[]> {
  const before = words.slice(0, -1);
  const last = words.at(-1) ?? "";
  // A flag at the end is left out: without its value it would be a parse error.
  const { command, operands, remaining } = await descend(
    root,
    before.at(-1)?.startsWith("-") ? before.slice(0, -1) : before,
  );

  const option = optionBefore(command, before.at(-1));
  if (option !== undefined) return valuesOf(option.argChoices, option.attributeName(), remaining, openNames);
  if (last.startsWith("-")) return flagsOf(command);
  if (command.commands.length > 0 && remaining.length === 0) {
    return command
      .createHelp()
      .visibleCommands(command)
      .map((each) => ({ value: each.name(), about: each.description() }));
  }
  const argument = argumentAt(command, remaining.length);
  if (argument === undefined || operands.length === 0) return [];
  return valuesOf(argument.argChoices, argument.name(), remaining, openNames);
}

/** Resolves the nouns and verbs among the words; the remaining operands are arguments of the last one. */
async function descend(root: CliCommand, words: readonly string[]) {
  const { operands } = root.parseOptions([...words]);
  let command: Command = (await addVerbs(root, operands[0])) ?? root;
  let depth = command === root ? 0 : 1;
  for (; depth < operands.length; depth += 1) {
    const next = command.commands.find((each) => [each.name(), ...each.aliases()].includes(operands[depth] ?? ""));
    if (next === undefined || command === root) break;
    command = next;
  }
  // Values of the command's own flags are not operands.
  const remaining = command.parseOptions(words.slice(positionAfter(words, operands.slice(0, depth)))).operands;
  return { command, operands, remaining };
}

function positionAfter(words: readonly string[], names: readonly string[]): number {
  let position = 0;
  for (const name of names) position = words.indexOf(name, position) + 1;
  return position;
}

/** The flag before the cursor, if it takes a value. */
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
