import { Option } from "commander";
import type { CliCommand } from "../command.ts";
import { omitUndefined, collect, take, hours } from "../flag-values.ts";

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
  new Option("--retry-policy <policy>", "standard: three attempts in 3 s; extended: five more in 18 hours").choices([
    "standard",
    "extended",
  ]);

export function addWebhooks(webhooks: CliCommand): void {
  webhooks
    .command("create <url>")
    .description("create an endpoint; its signing secret is shown only once")
    .option("--event <event>", "event type to send (repeatable); all by default", collect)
    .addOption(retryPolicy())
    .example("webhooks create https://example.com/hook --event service.running --event service.error")
    .does(async ({ client, output }, url: string, flags: { event?: string[]; retryPolicy?: "standard" | "extended" }) =>
      output.show(
        await client.webhooks.create({
          url,
          ...omitUndefined({ events: flags.event, retry_policy: flags.retryPolicy }),
        }),
      ),
    );

  webhooks
    .command("list")
    .description("list all endpoints, without their secrets")
    .example("webhooks list")
    .does(async ({ client, output }) => output.list(await take(client.webhooks.list()), columns));

  webhooks
    .command("get <webhook>")
    .description("show an endpoint")
    .example("webhooks get 019a...")
    .does(async ({ client, output }, id: string) => output.show(await client.webhooks.get(id)));

  webhooks
    .command("update <webhook>")
    .description("change URL, event types or state of an endpoint")
    .option("--url <url>", "new URL")
    .option("--event <event>", "event type to send (repeatable); replaces all", collect)
    .option("--no-event", "send no events")
    .option("--all-events", "send all events")
    .excludes("--all-events", "--event", "--no-event")
    .option("--active", "enable the endpoint, also after the platform disabled it")
    .option("--no-active", "disable the endpoint")
    .addOption(retryPolicy())
    .example("webhooks update 019a... --event service.error")
    .example("webhooks update 019a... --active")
    .does(async ({ client, output }, id: string, flags: UpdateFlags) => {
      const events = flags.allEvents === true ? null : flags.event === false ? [] : flags.event;
      const change = omitUndefined({ url: flags.url, events, active: flags.active, retry_policy: flags.retryPolicy });
      output.show(await client.webhooks.update(id, change));
    });

  webhooks
    .command("delete <webhook>")
    .description("delete an endpoint; no further attempts are made")
    .option("--yes", "do not ask for confirmation")
    .example("webhooks delete 019a...")
    .does(async ({ client, output, confirm }, id: string, { yes }: { yes?: boolean }) => {
      await confirm(`Delete the webhook ${id}?`, yes);
      await client.webhooks.delete(id);
      output.info(`${id} is deleted`);
    });

  webhooks
    .command("test <webhook>")
    .description("send an event webhook.test")
    .example("webhooks test 019a...")
    .does(async ({ client, output }, id: string) => output.show(await client.webhooks.test(id)));

  webhooks
    .command("rotate-secret <webhook>")
    .description("create a new signing secret, shown only once; both secrets sign until the overlap ends")
    .option("--overlap-hours <hours>", "time in which the old secret signs too, such as 24 or 2d", hours, 24)
    .option("--yes", "do not ask for confirmation")
    .example("webhooks rotate-secret 019a... --overlap-hours 1")
    .does(async ({ client, output, confirm }, id: string, flags: { overlapHours: number; yes?: boolean }) => {
      const question = `Give the webhook ${id} a new secret? The old one stops signing immediately.`;
      if (flags.overlapHours === 0) await confirm(question, flags.yes);
      output.show(await client.webhooks.rotateSecret(id, flags.overlapHours));
    });

  webhooks
    .command("deliveries <webhook>")
    .description("list the newest 100 delivery attempts, newest first")
    .example("webhooks deliveries 019a...")
    .does(async ({ client, output }, id: string) => output.list(await client.webhooks.deliveries(id), deliveryColumns));

  webhooks
    .command("redeliver <webhook> <delivery>")
    .description("deliver the event of an attempt again")
    .example("webhooks redeliver 019a... 019b...")
    .does(async ({ client, output }, id: string, delivery: string) =>
      output.show(await client.webhooks.redeliver(id, delivery)),
    );
}
