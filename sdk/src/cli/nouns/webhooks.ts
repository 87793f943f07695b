import { Option } from "commander";
import type { CliCommand } from "../command.ts";
import { given, several, take, wholeNumber } from "../flag-values.ts";

const columns = ["id", "url", "events", "active", "retry_policy", "created_at"];
const deliveryColumns = [
  "id",
  "event_type",
  "attempt",
  "response_status",
  "error_message",
  "created_at",
  "duration_ms",
];

interface EndpointFlags {
  readonly event?: string[] | false;
  readonly retryPolicy?: "standard" | "extended";
}

interface UpdateFlags extends EndpointFlags {
  readonly url?: string;
  readonly allEvents?: boolean;
  readonly active?: boolean;
}

const retryPolicy = () =>
  new Option(
    "--retry-policy <policy>",
    "standard tries three times in 3 s, extended five times more in 18 hours",
  ).choices(["standard", "extended"]);

export function addWebhooks(webhooks: CliCommand): void {
  webhooks
    .command("create <url>")
    .description("make an endpoint; its signing secret is shown this once")
    .option("--event <event>", "a type that it gets (repeat); all when none is named", several)
    .addOption(retryPolicy())
    .example("webhooks create https://example.com/hook --event service.running --event service.error")
    .does(async ({ client, output }, url: string, flags: { event?: string[]; retryPolicy?: "standard" | "extended" }) =>
      output.show(
        await client.webhooks.create({ url, ...given({ events: flags.event, retry_policy: flags.retryPolicy }) }),
      ),
    );

  webhooks
    .command("list")
    .description("all endpoints, without their secrets")
    .example("webhooks list")
    .does(async ({ client, output }) => output.list(await take(client.webhooks.list()), columns));

  webhooks
    .command("get <webhook>")
    .description("one endpoint")
    .example("webhooks get 019a...")
    .does(async ({ client, output }, id: string) => output.show(await client.webhooks.get(id)));

  webhooks
    .command("update <webhook>")
    .description("change where it is, what it gets, or whether it gets anything")
    .option("--url <url>", "another address")
    .option("--event <event>", "a type that it gets, in place of all before (repeat)", several)
    .option("--no-event", "it gets none")
    .option("--all-events", "it gets all")
    .option("--active", "on again, also when the platform switched it off")
    .option("--no-active", "off")
    .addOption(retryPolicy())
    .example("webhooks update 019a... --event service.error")
    .example("webhooks update 019a... --active")
    .does(async ({ client, output }, id: string, flags: UpdateFlags) => {
      const events = flags.allEvents === true ? null : flags.event === false ? [] : flags.event;
      const change = given({ url: flags.url, events, active: flags.active, retry_policy: flags.retryPolicy });
      output.show(await client.webhooks.update(id, change));
    });

  webhooks
    .command("delete <webhook>")
    .description("end it; no attempt begins any more")
    .option("--yes", "do not ask")
    .example("webhooks delete 019a...")
    .does(async ({ client, output, confirm }, id: string, { yes }: { yes?: boolean }) => {
      await confirm(`Delete the webhook ${id}?`, yes);
      await client.webhooks.delete(id);
      output.say(`${id} is deleted`);
    });

  webhooks
    .command("test <webhook>")
    .description("send it an event webhook.test")
    .example("webhooks test 019a...")
    .does(async ({ client, output }, id: string) => output.show(await client.webhooks.test(id)));

  webhooks
    .command("rotate-secret <webhook>")
    .description("make a new signing secret, shown this once; both sign until the overlap is over")
    .option("--overlap-hours <hours>", "how long the old one signs too", wholeNumber, 24)
    .option("--yes", "do not ask")
    .example("webhooks rotate-secret 019a... --overlap-hours 1")
    .does(async ({ client, output, confirm }, id: string, flags: { overlapHours: number; yes?: boolean }) => {
      const question = `Give the webhook ${id} a new secret? The old one signs nothing any more.`;
      if (flags.overlapHours === 0) await confirm(question, flags.yes);
      output.show(await client.webhooks.rotateSecret(id, flags.overlapHours));
    });

  webhooks
    .command("deliveries <webhook>")
    .description("its newest 100 attempts, newest first")
    .example("webhooks deliveries 019a...")
    .does(async ({ client, output }, id: string) => output.list(await client.webhooks.deliveries(id), deliveryColumns));

  webhooks
    .command("redeliver <webhook> <delivery>")
    .description("send the event of an attempt again")
    .example("webhooks redeliver 019a... 019b...")
    .does(async ({ client, output }, id: string, delivery: string) =>
      output.show(await client.webhooks.redeliver(id, delivery)),
    );
}
