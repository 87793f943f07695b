import { type CliCommand, verbAliases } from "../../cli/src/command.ts";
import { everyCommand, leavesOf } from "../../cli/src/every-command.ts";
import { exitCodes } from "../../cli/src/exit-code.ts";
import { nounGroups, nouns } from "../../cli/src/nouns.ts";
import { link, type Pages, table } from "./pages.ts";

const introduction = `
\`./bin/holdfast.js\` in a checkout; link it as \`holdfast\` where you like. \`holdfast NOUN VERB --help\` prints the same as this page.

## Installation and credentials

After \`npm start\` no settings are needed: the credentials are in \`.holdfast/admin.json\` of this directory or of a parent.
Elsewhere, sign in once; the session is stored in a profile, in a file that only you can read (\`$XDG_CONFIG_HOME/holdfast\`):

\`\`\`
holdfast login --base-url https://holdfast.example.com --ca-file ca.pem --profile work
holdfast profile use work
\`\`\`

Precedence: flags, the environment, the current profile, the installation in this directory. A credential that is stored for one
installation is never sent to another.

| variable | flag | meaning |
| --- | --- | --- |
| \`HOLDFAST_BASE_URL\` | \`--base-url\` | the API |
| \`HOLDFAST_API_KEY_ID\`, \`HOLDFAST_API_KEY_SECRET\` | | an API key, or the name and password of a user |
| \`HOLDFAST_TOKEN\` | | a token, which takes precedence over a key |
| \`HOLDFAST_CA_FILE\` | \`--ca-file\` | PEM file of the authorities to trust, instead of the default ones |
| \`HOLDFAST_ORGANIZATION\` | \`--organization\` | id of the organization to act in |
| \`HOLDFAST_PROFILE\` | \`--profile\` | the profile to use |
| \`HOLDFAST_DATA\` | \`--data\` | data directory of an installation on this host |

No flag accepts a secret. Passwords and secrets are read from the terminal without echo, or as lines of standard input. Secrets
are printed only by commands that create a credential, by \`users password\`, and by \`services connect --conninfo\` (to a file).

## Results

On a terminal: tables as wide as the terminal, with colors (\`NO_COLOR\` turns them off). Piped: the same without colors and truncation.
\`--output json\` and \`--output yaml\` have all fields with the names of the API; with \`--follow\`, one object per line, or one document each.
\`--wait\` shows the current step. Commands that destroy something ask for confirmation; \`--yes\` confirms, and is required without a terminal.
`;

/** Pages of commands: one for each noun with arguments, flags and examples, and an index. */
export async function cliPages(): Promise<Pages> {
  const root = await everyCommand();
  const index = nounGroups.flatMap(({ title, nouns }) => [
    `## ${title}`,
    "",
    ...table(
      ["noun", "commands"],
      nouns.map(({ name, summary }) => [link(`\`${name}\``, `cli/${name}.md`), summary]),
    ),
    "",
  ]);
  const codes = Object.entries(exitCodes).map(([code, meaning]) => [code, meaning]);
  const text = [
    "# The command line",
    introduction,
    ...table(["exit code", "meaning"], codes),
    "",
    "`services connect` exits with the code of the engine's client, such as psql.",
    "",
    ...index,
  ];
  const pages = (root.commands as CliCommand[])
    .filter((noun) => nouns.some(({ name }) => name === noun.name()))
    .map((noun) => [`cli/${noun.name()}.md`, nounPage(noun)] as const);
  return new Map([["cli.md", text.join("\n")], ...pages]);
}

function nounPage(noun: CliCommand): string {
  const rows = leavesOf(noun).flatMap((command) => {
    const flags = command.options
      .filter(({ hidden }) => !hidden)
      .map(({ flags: spelled, description }) => `\`${cell(spelled)}\` ${cell(description)}`);
    const isNoun = command === noun;
    const isUsual = (alias: string) => isNoun || verbAliases.get(command.name())?.includes(alias) === true;
    const names = (word: string, aliases: readonly string[]) =>
      aliases.length === 0 ? "" : `; ${word} ${aliases.map((alias) => `\`${alias}\``).join(", ")}`;
    const also = names("also", command.aliases().filter(isUsual));
    const former = names(
      "formerly",
      command.aliases().filter((alias) => !isUsual(alias)),
    );
    const [path, args] = [pathOf(command), command.registeredArguments.map(argumentText).join(" ")];
    const summary = cell(`${command.description()}${also}${former}`);
    return [[`\`${[path, args].filter(Boolean).join(" ")}\``, summary, flags.join("<br>")]];
  });
  const examples = leavesOf(noun).flatMap(({ examples: lines }) => lines);
  return [
    `# holdfast ${noun.name()}: ${noun.description()}`,
    "",
    "Credentials, results and exit codes: [the command line](../cli.md).",
    "",
    ...table(["command", "description", "flags"], rows),
    "",
    "```",
    ...examples,
    "```",
    "",
  ].join("\n");
}

function pathOf(command: Pick<NonNullable<CliCommand["parent"]>, "name" | "parent">): string {
  const { parent } = command;
  return parent === null || parent.parent === null ? command.name() : `${pathOf(parent)} ${command.name()}`;
}

function argumentText(argument: CliCommand["registeredArguments"][number]): string {
  const name = argument.variadic ? `${argument.name()}...` : argument.name();
  return argument.required ? `<${name}>` : `[${name}]`;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}
