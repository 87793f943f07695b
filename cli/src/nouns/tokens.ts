import type { CliCommand } from "../command.ts";
import { collect, take, seconds } from "../flag-values.ts";

const columns = ["id", "scopes", "resources", "expires_at", "created_by", "last_used_at", "last_used_from"];

interface CreateFlags {
  readonly scope: string[];
  readonly ttl: number;
  readonly service?: string[];
}

export function addTokens(tokens: CliCommand): void {
  tokens
    .command("create")
    .description("create a token; it is shown only once")
    .requiredOption("--scope <scope>", "scope, such as services:read (repeatable)", collect)
    .option("--ttl <duration>", "lifetime, such as 3600 (seconds), 30m or 7d", seconds, 3_600)
    .option("--service <service>", "limit the token to a service (repeatable)", collect)
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
    .description("list all valid tokens")
    .example("tokens list")
    .does(async ({ client, output }) => output.list(await take(client.tokens.list()), columns));

  tokens
    .command("delete <token>")
    .description("revoke a token by its id; it is refused immediately")
    .option("--yes", "do not ask for confirmation")
    .example("tokens delete 019a...")
    .does(async ({ client, output, confirm }, id: string, { yes }: { yes?: boolean }) => {
      await confirm(`Revoke the token ${id}? Its calls are refused immediately.`, yes);
      await client.tokens.delete(id);
      output.info(`${id} is revoked`);
    });
}
