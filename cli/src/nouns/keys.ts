import type { CliCommand } from "../command.ts";
import { omitUndefined, collect, take, hours, timeOrDelay } from "../flag-values.ts";

const columns = ["id", "name", "scopes", "expires_at", "last_used_at", "last_used_from"];

export function addKeys(keys: CliCommand): void {
  keys
    .command("create <name>")
    .description("create a key; its secret is shown only once")
    .requiredOption("--scope <scope>", "scope, such as services:read (repeatable)", collect)
    .option(
      "--expires-at <time>",
      "expiry time: RFC 3339, or a time from now such as 30d; none by default",
      timeOrDelay,
    )
    .example("keys create dashboard --scope services:read")
    .example("keys create deploy --scope services:read --scope services:write --expires-at 2027-01-31T00:00:00Z")
    .does(async ({ client, output }, name: string, flags: { scope: string[]; expiresAt?: string }) =>
      output.show(
        await client.apiKeys.create({ name, scopes: flags.scope, ...omitUndefined({ expires_at: flags.expiresAt }) }),
      ),
    );

  keys
    .command("list")
    .description("list all keys, without their secrets")
    .example("keys list")
    .does(async ({ client, output }) => output.list(await take(client.apiKeys.list()), columns));

  keys
    .command("rotate <key>")
    .description("give a key a new secret, shown only once")
    .option("--overlap-hours <hours>", "time in which the old secret remains valid, such as 24 or 2d", hours, 0)
    .option("--yes", "do not ask for confirmation")
    .example("keys rotate hfk_... --overlap-hours 24")
    .does(async ({ client, output, confirm }, id: string, flags: { overlapHours: number; yes?: boolean }) => {
      const question = `Give the key ${id} a new secret? The old one is refused immediately.`;
      if (flags.overlapHours === 0) await confirm(question, flags.yes);
      output.show(await client.apiKeys.rotate(id, flags.overlapHours));
    });

  keys
    .command("delete <key>")
    .description("delete a key, which is refused immediately")
    .option("--yes", "do not ask for confirmation")
    .example("keys delete hfk_...")
    .does(async ({ client, output, confirm }, id: string, { yes }: { yes?: boolean }) => {
      await confirm(`Delete the key ${id}? Its calls are refused immediately.`, yes);
      await client.apiKeys.delete(id);
      output.info(`${id} is deleted`);
    });
}
