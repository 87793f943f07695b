import { readFileSync } from "node:fs";
import { Option } from "commander";
import { CliCommand } from "./command.ts";
import type { CliDeps } from "./context.ts";
import { exitCodes, UsageError } from "./exit-code.ts";
import { addGlobalFlags } from "./global-flags.ts";
import { nounGroups } from "./nouns.ts";
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
  refuseUnknown(root, first === "help" ? words.slice(1) : words);
  addGlobalFlags(root);
  return root;
}

/** Throws UsageError for a word that is not a command, also where help is requested. */
function refuseUnknown(root: CliCommand, words: readonly string[]): void {
  let command = root;
  const path: string[] = [];
  for (const word of words) {
    if (word.startsWith("-") || word === "help" || command.commands.length === 0) return;
    const next = commandNamed(command, word);
    path.push(word);
    if (next === undefined) {
      const rootCommand = command === root ? undefined : commandNamed(root, word);
      const advice = rootCommand === undefined ? "" : ` (holdfast ${word} is a command)`;
      throw new UsageError(`error: unknown command '${path.join(" ")}'${advice}\n(--help shows how)`);
    }
    command = next;
  }
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
