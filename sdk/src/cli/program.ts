import { readFileSync } from "node:fs";
import { Option } from "commander";
import { CliCommand } from "./command.ts";
import type { CliDeps } from "./context.ts";
import { exitCodes } from "./exit-code.ts";
import { addGlobalFlags } from "./global-flags.ts";
import { nounGroups } from "./nouns.ts";
import { formats } from "./output.ts";

const notes = `
Credentials: HOLDFAST_API_KEY_ID and HOLDFAST_API_KEY_SECRET, or HOLDFAST_TOKEN; else the profile (holdfast login); else
the installation in this directory. Flags take precedence over the environment, and the environment over the profile.
To run a platform: holdfast up, holdfast host, holdfast images, holdfast clean, each with --help.

Exit codes:
${Object.entries(exitCodes)
  .map(([code, meaning]) => `  ${code.padEnd(5)}${meaning}`)
  .join("\n")}`;

/** The `holdfast` command with its nouns but without their verbs. Its parser throws instead of exiting the process. */
export function createRoot(deps: CliDeps, groups = nounGroups): CliCommand {
  const root = new CliCommand(deps, "holdfast")
    .description("Managed data services on your own machines.")
    .version(versionOf(new URL("../../package.json", import.meta.url)))
    .addOption(new Option("--output <format>", "format of results").choices(formats).default("table"))
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
    for (const { name, summary } of members) root.command(name).description(summary);
  }
  root.addHelpText("after", notes);
  return root;
}

/**
 * The command with the verbs of the noun that the arguments name. Other nouns are not loaded, because that takes time.
 */
export async function createProgram(args: readonly string[], deps: CliDeps, groups = nounGroups): Promise<CliCommand> {
  const root = createRoot(deps, groups);
  // A second root parses the arguments, so that the real one keeps no parsed state.
  const [first, second] = createRoot(deps, groups)
    .enablePositionalOptions()
    .parseOptions([...args]).operands;
  await addVerbs(root, first === "help" ? second : first, groups);
  addGlobalFlags(root);
  return root;
}

/** Loads a noun and adds its verbs; undefined for an unknown noun. */
export async function addVerbs(
  root: CliCommand,
  name: string | undefined,
  groups = nounGroups,
): Promise<CliCommand | undefined> {
  const noun = groups.flatMap(({ nouns }) => nouns).find((each) => each.name === name);
  const command = root.commands.find((each) => each.name() === name) as CliCommand | undefined;
  if (noun === undefined || command === undefined) return undefined;
  (await noun.load())(command);
  return command;
}

function versionOf(manifest: URL): string {
  return (JSON.parse(readFileSync(manifest, "utf8")) as { version: string }).version;
}
