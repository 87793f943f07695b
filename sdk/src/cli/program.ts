import { Command } from "commander";
import { addAdminCommands } from "./admin-commands.ts";
import { addAccessCommands } from "./access-commands.ts";
import type { CliDeps } from "./context.ts";
import { addEngineCommands } from "./engine-commands.ts";
import { addReadCommands } from "./read-commands.ts";
import { addServicesCommands } from "./services-commands.ts";

/** The `holdfast` command. Its parser throws instead of ending the process. */
export function createProgram(deps: CliDeps): Command {
  const program = new Command("holdfast")
    .description("Managed data services on your own machines.")
    .option("--output <format>", "json or table", "table")
    .option("--base-url <url>", "the API, over HOLDFAST_BASE_URL")
    .option("--ca-file <path>", "authority to trust, over HOLDFAST_CA_FILE")
    .option("--organization <id>", "the organization to act in, over HOLDFAST_ORGANIZATION")
    .option("--data <directory>", "data of a local installation, over HOLDFAST_DATA")
    .addHelpText(
      "after",
      "\nCredentials: HOLDFAST_API_KEY_ID and HOLDFAST_API_KEY_SECRET, or HOLDFAST_TOKEN, else those of the local installation." +
        "\nExit codes: 0 ok, 1 failed, 2 usage, 3 not signed in or forbidden, 4 not found, 5 conflict, 6 timed out, 7 Error, 130 interrupted." +
        "\nLocal installation: holdfast up, holdfast clean.",
    );
  addServicesCommands(program, deps);
  addEngineCommands(program, deps);
  addReadCommands(program, deps);
  addAccessCommands(program, deps);
  addAdminCommands(program, deps);
  harden(program, deps);
  return program;
}

/** What commander does not hand down to subcommands that were made before. */
function harden(command: Command, deps: CliDeps): void {
  command
    .exitOverride()
    .configureOutput({ writeOut: (text) => deps.stdout.write(text), writeErr: (text) => deps.stderr.write(text) })
    .showHelpAfterError("(--help shows how)");
  for (const child of command.commands) harden(child, deps);
}
