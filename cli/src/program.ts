import { readFileSync } from "node:fs";
import { Option } from "commander";
import { CliCommand } from "./command.ts";
import type { CliDeps } from "./context.ts";
import { exitCodes, UsageError } from "./exit-code.ts";
import { addGlobalFlags } from "./global-flags.ts";
import { type NounGroup, nounGroups } from "./nouns.ts";
import { formats } from "./output.ts";

const notes = `
Credentials: HOLDFAST_API_KEY_ID and HOLDFAST_API_KEY_SECRET, or HOLDFAST_TOKEN; else the profile (holdfast login); else
the installation in this directory. Flags take precedence over the environment, and the environment over the profile.
To run a platform: holdfast up, host, dns, images, clean; as a service: holdfast install, upgrade, uninstall; each with
--help.

Exit codes:
${Object.entries(exitCodes)
  .map(([code, meaning]) => `  ${code.padEnd(5)}${meaning}`)
  .join("\n")}`;

/** The `holdfast` command with its nouns but without their verbs. Its parser throws instead of exiting the process. */
export function createRoot(deps: CliDeps, groups = nounGroups): CliCommand {
  const root = new CliCommand(deps, "holdfast")
    .description("Managed data services on your own machines.")
    .version(versionOf(new URL("../package.json", import.meta.url)))
    .addOption(new Option("-o, --output <format>", "format of results").choices(formats).default("table"))
    .option("--json", "the same as --output json")
    .option("--profile <profile>", "profile to use; overrides HOLDFAST_PROFILE")
    .option("--base-url <url>", "base URL of the API; overrides HOLDFAST_BASE_URL")
    .option("--ca-file <path>", "PEM file of the authority to trust; overrides HOLDFAST_CA_FILE")
    .option("--organization <organization>", "organization to act in; overrides HOLDFAST_ORGANIZATION")
    .option("--data <directory>", "data directory of a local installation; overrides HOLDFAST_DATA")
    .helpCommand("help [command]", "help for a command")
    .exitOverride()
    .configureOutput({ writeOut: (text) => deps.stdout.write(text), writeErr: (text) => deps.stderr.write(text) })
    .showHelpAfterError("(--help shows how)")
    .example("services create orders --type postgresql --wait")
    .example("services connect orders")
    .example("events --follow --output json");
  for (const { title, nouns: members } of groups) {
    root.commandsGroup(`${title}:`);
    for (const { name, summary, aliases = [] } of members) root.command(name).description(summary).aliases(aliases);
  }
  root.addHelpText("after", notes);
  return root;
}

/**
 * The command with the verbs of the noun that the arguments name. Other nouns are not loaded, because that takes time.
 */
export async function createProgram(args: readonly string[], deps: CliDeps, groups = nounGroups): Promise<CliCommand> {
  const root = createRoot(deps, groups);
  // A second root parses the arguments, so that the first one has no parsed state.
  const { operands, unknown } = createRoot(deps, groups)
    .enablePositionalOptions()
    .parseOptions([...args]);
  const [first, second] = operands;
  await addVerbs(root, first === "help" ? second : first, groups);
  const words = [...operands, ...unknown];
  const unknownPath = findUnknown(root, first === "help" ? words.slice(1) : words);
  if (unknownPath !== undefined) {
    const advice = await adviceOn(unknownPath, root, () => createRoot(deps, groups), groups);
    throw new UsageError(`error: unknown command '${unknownPath.join(" ")}'${advice}\n(--help shows how)`);
  }
  addGlobalFlags(root);
  return root;
}

/** The words up to the first one that is not a command, also where help is requested; undefined if all are. */
function findUnknown(root: CliCommand, words: readonly string[]): string[] | undefined {
  let command = root;
  const path: string[] = [];
  for (const word of words) {
    if (word.startsWith("-") || word === "help" || command.commands.length === 0) return undefined;
    const next = commandNamed(command, word);
    path.push(word);
    if (next === undefined) return path;
    command = next;
  }
  return undefined;
}

/** Number of verbs of one name above which none is advised, such as of `list`. */
const advisedMax = 3;

/** Commands that the user may mean, in parentheses; empty if there are none. */
async function adviceOn(
  path: readonly string[],
  root: CliCommand,
  newRoot: () => CliCommand,
  groups: readonly NounGroup[],
): Promise<string> {
  const word = path.at(-1) ?? "";
  const [noun] = path;
  if (path.length === 1) {
    const all = newRoot();
    const nouns = groups.flatMap((group) => group.nouns);
    for (const { name } of nouns) await addVerbs(all, name, groups);
    const found = nouns.flatMap(({ name }) => {
      const command = commandNamed(all, name);
      return command !== undefined && commandNamed(command, word) !== undefined ? [`holdfast ${name} ${word}`] : [];
    });
    if (found.length === 0 || found.length > advisedMax) return "";
    return ` (${found.join(", ")} ${found.length === 1 ? "is a command" : "are commands"})`;
  }
  if (commandNamed(root, word) !== undefined) return ` (holdfast ${word} is a command)`;
  const verbs = commandNamed(root, noun ?? "")?.commands.map((command) => command.name()) ?? [];
  return path.length === 2 ? ` (holdfast ${noun} has ${verbs.join(", ")})` : "";
}

function commandNamed(command: CliCommand, word: string): CliCommand | undefined {
  return (command.commands as CliCommand[]).find((each) => each.name() === word || each.aliases().includes(word));
}

/** Loads a noun and adds its verbs; undefined for an unknown noun. */
export async function addVerbs(
  root: CliCommand,
  name: string | undefined,
  groups = nounGroups,
): Promise<CliCommand | undefined> {
  const command = name === undefined ? undefined : commandNamed(root, name);
  const noun = groups.flatMap(({ nouns }) => nouns).find((each) => each.name === command?.name());
  if (noun === undefined || command === undefined) return undefined;
  (await noun.load())(command);
  return command;
}

function versionOf(manifest: URL): string {
  return (JSON.parse(readFileSync(manifest, "utf8")) as { version: string }).version;
}
