import { readFileSync } from "node:fs";
import { Option } from "commander";
import { CliCommand } from "./command.ts";
import type { CliDeps } from "./context.ts";
import { exitCodes } from "./exit-code.ts";
import { offerFlags } from "./flags-of-all.ts";
import { nounGroups } from "./nouns.ts";
import { formats } from "./output.ts";

const notes = `Who asks: HOLDFAST_API_KEY_ID and HOLDFAST_API_KEY_SECRET, or HOLDFAST_TOKEN; else the profile (holdfast login); else the
installation of this directory. Flags go over the environment, the environment over the profile.

A platform of your own: holdfast up, holdfast host, holdfast images, holdfast clean, each with --help.

Exit codes:
${Object.entries(exitCodes)
  .map(([code, meaning]) => `  ${code.padEnd(5)}${meaning}`)
  .join("\n")}`;

/** The `holdfast` command without its nouns' verbs. Its parser throws instead of ending the process. */
export function createRoot(deps: CliDeps, groups = nounGroups): CliCommand {
  const root = new CliCommand(deps, "holdfast")
    .description("Managed data services on your own machines.")
    .version(versionOf(new URL("../../package.json", import.meta.url)))
    .addOption(new Option("--output <format>", "how results are written").choices(formats).default("table"))
    .option("--profile <profile>", "the profile to use, over HOLDFAST_PROFILE")
    .option("--base-url <url>", "the API, over HOLDFAST_BASE_URL")
    .option("--ca-file <path>", "authority to trust, over HOLDFAST_CA_FILE")
    .option("--organization <organization>", "the organization to act in, over HOLDFAST_ORGANIZATION")
    .option("--data <directory>", "data of a local installation, over HOLDFAST_DATA")
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
 * The command with the verbs of the noun that these arguments begin with, and no others: each file costs time to read.
 */
export async function createProgram(args: readonly string[], deps: CliDeps, groups = nounGroups): Promise<CliCommand> {
  const root = createRoot(deps, groups);
  // Looked at by another one: what it finds stays with it.
  const [first, second] = createRoot(deps, groups)
    .enablePositionalOptions()
    .parseOptions([...args]).operands;
  await addVerbs(root, first === "help" ? second : first, groups);
  offerFlags(root);
  return root;
}

/** Loads the file of a noun; does nothing for an unknown noun. */
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
