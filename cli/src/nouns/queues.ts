import type { QueueTask, Task } from "@holdfast/sdk/responses.ts";
import { readFile } from "node:fs/promises";
import { parseExactly } from "@holdfast/sdk/exact-json.ts";
import type { NewQueue } from "@holdfast/sdk/requests.ts";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { UsageError } from "../exit-code.ts";
import { take, integer, seconds } from "../flag-values.ts";

const columns = ["name", "status", "database_name", "visibility_timeout_seconds", "max_attempts", "dlq_enabled"];
const messageColumns = ["id", "state", "attempt_count", "visible_at", "payload"];
const pollIntervalMs = 200;

interface Settings {
  readonly visibilitySeconds?: number;
  readonly maxAttempts?: number;
  readonly dlq?: string;
}

export function addQueues(queues: CliCommand): void {
  queues
    .command("list <service>")
    .description("list the queues of a service")
    .example("queues list orders")
    .does(async ({ client, output, serviceId }, service: string) =>
      output.list(await take(client.queues.list(await serviceId(service))), columns),
    );

  withSettings(queues.command("create <service> <name>").description("create a queue, and wait until it is Active"))
    .option("--database <database>", "database of the queue")
    .option("--no-wait", "return as soon as the request is accepted")
    .example("queues create orders jobs --visibility-seconds 60")
    .does(async (context, service: string, name: string, flags: Settings & { database?: string; wait: boolean }) => {
      const { client, output } = context;
      const id = await context.serviceId(service);
      const queue: NewQueue = { name, ...settingsOf(flags), ...(flags.database && { database_name: flags.database }) };
      const created = await client.queues.create(id, queue);
      output.show(flags.wait ? await untilActive(context, id, name) : created, columns);
    });

  queues
    .command("get <service> <queue>")
    .description("show a queue")
    .example("queues get orders jobs")
    .does(async ({ client, output, serviceId }, service: string, name: string) =>
      output.show(await client.queues.get(await serviceId(service), name), [...columns, "error_message"]),
    );

  withSettings(queues.command("update <service> <queue>").description("change the settings of a queue"))
    .example("queues update orders jobs --max-attempts 10")
    .does(async ({ client, output, serviceId }, service: string, name: string, flags: Settings) =>
      output.show(await client.queues.update(await serviceId(service), name, settingsOf(flags)), columns),
    );

  queues
    .command("delete <service> <queue>")
    .description("delete a queue with its messages")
    .option("--yes", "do not ask for confirmation")
    .example("queues delete orders jobs")
    .does(async (context, service: string, name: string, { yes }: { yes?: boolean }) => {
      const id = await context.serviceId(service);
      await context.confirm(`Delete the queue ${name} of ${service} with its messages?`, yes);
      context.output.show(await context.client.queues.delete(id, name), columns);
    });

  queues
    .command("send <service> <queue> [payload]")
    .description("send a message: a JSON object, or a file with a list of them")
    .option("--file <path>", "JSON file with an array of payloads, at most 100")
    .option("--delay <duration>", "delay before the messages can be claimed, such as 30s or 1h", seconds, 0)
    .example(`queues send orders jobs '{"order": 17}'`)
    .does(async (context, service: string, name: string, payload: string | undefined, flags: SendFlags) => {
      if (payload !== undefined && flags.file !== undefined) throw new UsageError("use either a payload or --file");
      const payloads = flags.file === undefined ? [payload ?? "{}"] : await payloadsOf(flags.file);
      const messages = payloads.map((text) => ({
        payload: (typeof text === "string" ? parseExactly(text) : text) as object,
        delay_seconds: flags.delay,
      }));
      const id = await context.serviceId(service);
      const task = await completed(context, await context.client.queues.enqueue(id, name, { messages }));
      context.output.show(task.result as object, ["message_ids"]);
    });

  queues
    .command("peek <service> <queue>")
    .description("show messages in the order of their ids, without claiming them")
    .option("--limit <count>", "maximum number of entries", integer, 20)
    .example("queues peek orders jobs")
    .does(async ({ client, output, serviceId }, service: string, name: string, { limit }: { limit: number }) =>
      output.list(await take(client.queues.peek(await serviceId(service), name), limit), messageColumns),
    );

  queues
    .command("stats <service> <queue>")
    .description("show the numbers of ready, in-flight, delayed and dead messages")
    .example("queues stats orders jobs")
    .does(async (context, service: string, name: string) => {
      const task = await context.client.queues.count(await context.serviceId(service), name);
      const { result } = await completed(context, task);
      context.output.show(result as object, [
        "ready_messages",
        "inflight_messages",
        "delayed_messages",
        "dead_messages",
        "oldest_age_seconds",
      ]);
    });

  queues
    .command("purge <service> <queue>")
    .description("delete all messages that are not dead")
    .option("--yes", "do not ask for confirmation")
    .example("queues purge orders jobs")
    .does(async (context, service: string, name: string, { yes }: { yes?: boolean }) => {
      const id = await context.serviceId(service);
      await context.confirm(`Delete all messages of ${name} in ${service}?`, yes);
      await showCount(context, await context.client.queues.purge(id, name), "deleted");
    });

  addDead(queues.command("dead").description("dead messages, whose attempts are used up"));
}

interface SendFlags {
  readonly file?: string;
  readonly delay: number;
}

function addDead(dead: CliCommand): void {
  dead
    .command("list <service> <queue>")
    .description("list dead messages in the order of their ids")
    .option("--limit <count>", "maximum number of entries", integer, 20)
    .example("queues dead list orders jobs")
    .does(async ({ client, output, serviceId }, service: string, name: string, { limit }: { limit: number }) =>
      output.list(await take(client.queues.dead(await serviceId(service), name), limit), [
        "id",
        "attempt_count",
        "died_at",
        "last_error",
        "payload",
      ]),
    );

  dead
    .command("redrive <service> <queue> [ids...]")
    .description("make dead messages ready again: those named, or all")
    .example("queues dead redrive orders jobs 17 18")
    .does(async (context, service: string, name: string, ids: readonly string[]) => {
      const id = await context.serviceId(service);
      await showCount(context, await context.client.queues.redrive(id, name, ids.map(integer)), "ready again");
    });

  dead
    .command("purge <service> <queue>")
    .description("delete all dead messages")
    .option("--yes", "do not ask for confirmation")
    .example("queues dead purge orders jobs")
    .does(async (context, service: string, name: string, { yes }: { yes?: boolean }) => {
      const id = await context.serviceId(service);
      await context.confirm(`Delete all dead messages of ${name} in ${service}?`, yes);
      await showCount(context, await context.client.queues.purgeDead(id, name), "deleted");
    });
}

function withSettings(command: CliCommand): CliCommand {
  return command
    .option("--visibility-seconds <duration>", "visibility timeout of claimed messages, such as 60 or 5m", seconds)
    .option("--max-attempts <count>", "number of attempts before a message is dead", integer)
    .option("--dlq <on|off>", "on: store dead messages for 14 days; off: delete them");
}

function settingsOf({ visibilitySeconds, maxAttempts, dlq }: Settings) {
  return {
    ...(visibilitySeconds === undefined ? {} : { visibility_timeout_seconds: visibilitySeconds }),
    ...(maxAttempts === undefined ? {} : { max_attempts: maxAttempts }),
    ...(dlq === undefined ? {} : { dlq_enabled: dlq === "on" }),
  };
}

async function payloadsOf(path: string): Promise<unknown[]> {
  const read = parseExactly(await readFile(path, "utf8"));
  if (!Array.isArray(read)) throw new Error(`${path} must have a JSON array of payloads`);
  return read;
}

async function untilActive({ client }: Context, serviceId: string, name: string) {
  for (;;) {
    const queue = await client.queues.get(serviceId, name);
    if (queue.status === "Active") return queue;
    if (queue.status === "Failed") throw new Error(`${name} could not be created: ${queue.error_message ?? ""}`);
    await new Promise((resolve) => setTimeout(resolve, pollIntervalMs));
  }
}

async function completed({ client }: Context, { task_id }: QueueTask): Promise<Task> {
  for (;;) {
    const task = await client.tasks.get(task_id);
    if (task.status === "completed") return task;
    if (task.status === "failed") throw new Error(task.error?.message ?? "the task failed");
    await new Promise((resolve) => setTimeout(resolve, pollIntervalMs));
  }
}

async function showCount(context: Context, task: QueueTask, what: string): Promise<void> {
  const { result } = await completed(context, task);
  const { messages } = result as { messages: number };
  context.output.info(`${messages} ${messages === 1 ? "message is" : "messages are"} ${what}`);
}
