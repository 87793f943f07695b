import type { CliCommand } from "../command.ts";
import { several, take, wholeNumber } from "../flag-values.ts";

const columns = ["id", "scopes", "resources", "expires_at", "created_by", "last_used_at", "last_used_from"];

interface CreateFlags {
  readonly scope: string[];
  readonly ttl: number;
  readonly service?: string[];
}

export function addTokens(tokens: CliCommand): void {
  tokens
    .command("create")
    .description("make a token; it is shown this once")
    .requiredOption("--scope <scope>", "a right that it has, such as services:read (repeat)", several)
    .option("--ttl <seconds>", "how long it lives", wholeNumber, 3_600)
    .option("--service <service>", "limit it to a service (repeat)", several)
    .example("tokens create --scope services:read --ttl 600")
    .example("tokens create --scope services:secrets --service orders")
    .does(async (context, flags: CreateFlags) => {
      const found = await Promise.all((flags.service ?? []).map((name) => context.service(name)));
      const resources = found.map(({ id }) => ({ kind: "managed-service", id }) as const);
      const { tokens: api } = context.client;
      context.output.show(await api.create({ scopes: flags.scope, ttl_seconds: flags.ttl, resources }));
    });

  tokens
    .command("list")
    .description("all tokens that are good")
    .example("tokens list")
    .does(async ({ client, output }) => output.list(await take(client.tokens.list()), columns));

  tokens
    .command("delete <token>")
    .description("end a token, by its id, at once")
    .option("--yes", "do not ask")
    .example("tokens delete 019a...")
    .does(async ({ client, output, confirm }, id: string, { yes }: { yes?: boolean }) => {
      await confirm(`End the token ${id}? What uses it is refused at once.`, yes);
      await client.tokens.delete(id);
      output.say(`${id} is ended`);
    });
}
