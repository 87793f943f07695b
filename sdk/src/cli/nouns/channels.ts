import { Option } from "commander";
import type { ChannelType } from "../../answers.ts";
import type { CliCommand } from "../command.ts";
import { given, take } from "../flag-values.ts";

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
    .description("make a channel; a webhook's signing secret is shown this once, an e-mail address has to be confirmed")
    .addOption(new Option("--type <type>", "what it is; --url or --address says it too").choices(["webhook", "email"]))
    .option("--url <url>", "an HTTP endpoint that alerts are posted to")
    .option("--address <address>", "an e-mail address that alerts are sent to")
    .example("channels create --type webhook --url https://example.com/alerts")
    .example("channels create on-call --address team@example.com")
    .does(async ({ client, output }, name: string | undefined, { type, url, address }: CreateFlags) =>
      output.show(
        await client.channels.create({
          name: name ?? address ?? hostOf(url) ?? "",
          type: type ?? (address === undefined ? "webhook" : "email"),
          config: given({ url, address }),
        }),
      ),
    );

  channels
    .command("list")
    .description("all channels, without their secrets")
    .example("channels list")
    .does(async ({ client, output }) => output.list(await take(client.channels.list()), columns));

  channels
    .command("get <channel>")
    .description("one channel")
    .example("channels get 019a...")
    .does(async ({ client, output }, id: string) => output.show(await client.channels.get(id)));

  channels
    .command("update <channel>")
    .description("change its name, or where it leads; another e-mail address has to be confirmed anew")
    .option("--name <name>", "another name")
    .option("--url <url>", "another endpoint")
    .option("--address <address>", "another e-mail address")
    .example("channels update 019a... --name on-call")
    .does(async ({ client, output }, id: string, flags: ConfigFlags & { name?: string }) => {
      const config = given({ url: flags.url, address: flags.address });
      const change = given({ name: flags.name, config: Object.keys(config).length === 0 ? undefined : config });
      output.show(await client.channels.update(id, change));
    });

  channels
    .command("delete <channel>")
    .description("end it; refused while a rule names it")
    .option("--yes", "do not ask")
    .example("channels delete 019a...")
    .does(async ({ client, output, confirm }, id: string, { yes }: { yes?: boolean }) => {
      await confirm(`Delete the channel ${id}?`, yes);
      await client.channels.delete(id);
      output.say(`${id} is deleted`);
    });

  channels
    .command("test <channel>")
    .description("send it an event channel.test, or its link again if it is an address that is not confirmed")
    .example("channels test 019a...")
    .does(async ({ client, output }, id: string) => output.show(await client.channels.test(id)));

  channels
    .command("deliveries <channel>")
    .description("its newest 100 attempts, newest first")
    .example("channels deliveries 019a...")
    .does(async ({ client, output }, id: string) => output.list(await client.channels.deliveries(id), deliveryColumns));
}

/** The name of a webhook that was given none. */
function hostOf(url = ""): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}
