import { Option } from "commander";
import type { ChannelType } from "@holdfast/sdk/responses.ts";
import type { CliCommand } from "../command.ts";
import { omitUndefined, take } from "../flag-values.ts";

const columns = ["id", "name", "type", "config", "confirmed_at", "created_at"];
const deliveryColumns = [
  "id",
  "event_type",
  "attempt",
  "response_status",
  "error_message",
  "created_at",
  "duration_ms",
];

interface ConfigFlags {
  readonly url?: string;
  readonly address?: string;
}

interface CreateFlags extends ConfigFlags {
  readonly type?: ChannelType;
}

export function addChannels(channels: CliCommand): void {
  channels
    .command("create [name]")
    .description(
      "create a channel; the signing secret of a webhook is shown only once; an e-mail address must be confirmed",
    )
    .addOption(
      new Option("--type <type>", "type of the channel; implied by --url and --address").choices(["webhook", "email"]),
    )
    .option("--url <url>", "an HTTP endpoint that alerts are posted to")
    .option("--address <address>", "an e-mail address that alerts are sent to")
    .example("channels create --type webhook --url https://example.com/alerts")
    .example("channels create on-call --address team@example.com")
    .does(async ({ client, output }, name: string | undefined, { type, url, address }: CreateFlags) =>
      output.show(
        await client.channels.create({
          name: name ?? address ?? hostOf(url) ?? "",
          type: type ?? (address === undefined ? "webhook" : "email"),
          config: omitUndefined({ url, address }),
        }),
      ),
    );

  channels
    .command("list")
    .description("list all channels, without their secrets")
    .example("channels list")
    .does(async ({ client, output }) => output.list(await take(client.channels.list()), columns));

  channels
    .command("get <channel>")
    .description("show a channel")
    .example("channels get 019a...")
    .does(async ({ client, output }, id: string) => output.show(await client.channels.get(id)));

  channels
    .command("update <channel>")
    .description("change name or target; a new e-mail address must be confirmed")
    .option("--name <name>", "new name")
    .option("--url <url>", "new endpoint")
    .option("--address <address>", "new e-mail address")
    .example("channels update 019a... --name on-call")
    .does(async ({ client, output }, id: string, flags: ConfigFlags & { name?: string }) => {
      const config = omitUndefined({ url: flags.url, address: flags.address });
      const change = omitUndefined({ name: flags.name, config: Object.keys(config).length === 0 ? undefined : config });
      output.show(await client.channels.update(id, change));
    });

  channels
    .command("delete <channel>")
    .description("delete a channel, unless a rule uses it")
    .option("--yes", "do not ask for confirmation")
    .example("channels delete 019a...")
    .does(async ({ client, output, confirm }, id: string, { yes }: { yes?: boolean }) => {
      await confirm(`Delete the channel ${id}?`, yes);
      await client.channels.delete(id);
      output.info(`${id} is deleted`);
    });

  channels
    .command("test <channel>")
    .description("send an event channel.test, or the confirmation mail again")
    .example("channels test 019a...")
    .does(async ({ client, output }, id: string) => output.show(await client.channels.test(id)));

  channels
    .command("deliveries <channel>")
    .description("list the newest 100 delivery attempts, newest first")
    .example("channels deliveries 019a...")
    .does(async ({ client, output }, id: string) => output.list(await client.channels.deliveries(id), deliveryColumns));
}

/** The default name of a webhook channel. */
function hostOf(url = ""): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}
