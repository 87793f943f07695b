import type { LogLevel, LogLine } from "../../answers.ts";
import { Option } from "commander";
import { nodeColumns } from "./service-fields.ts";
import type { CliCommand } from "../command.ts";
import { given, take, wholeNumber } from "../flag-values.ts";
import { printable } from "../table.ts";
import { type EventFlags, showEvents, withEventFlags } from "./event-stream.ts";

const operationColumns = ["id", "type", "status", "step", "progress_pct", "created_at", "finished_at"];

interface LogFlags {
  readonly since?: string;
  readonly level?: LogLevel;
  readonly limit: number;
  readonly follow?: boolean;
}

/** What can be seen of a service and does not change it. */
export function addServiceViews(services: CliCommand): void {
  services
    .command("logs <service>")
    .description("lines of its engine's log")
    .option("--since <time>", "RFC 3339")
    .addOption(new Option("--level <level>", "this and what is graver").choices(["debug", "info", "warning", "error"]))
    .option("--limit <lines>", "at most so many, 200 at most", wholeNumber, 100)
    .option("--follow", "go on as they come")
    .example("services logs orders --level warning")
    .example("services logs orders --follow")
    .does(async ({ client, output, serviceId, signal }, name: string, flags: LogFlags) => {
      const id = await serviceId(name);
      const query = given({ since: flags.since, level: flags.level });
      const show = (line: LogLine) => output.entry(line, textOf(line));
      if (flags.follow === true) {
        for await (const line of client.services.followLogs(id, query, { signal })) show(line);
      } else {
        for (const line of (await client.services.logs(id, query, { limit: flags.limit })).lines) show(line);
      }
    });

  withEventFlags(services.command("events <service>"))
    .description("what happened to it, oldest first; also when it is gone, by its id")
    .example("services events orders --follow")
    .does(async (context, name: string, flags: EventFlags) => {
      const id = await context.serviceId(name);
      await showEvents(context, { ...flags, service: id });
    });

  services
    .command("nodes <service>")
    .description("the machines that it runs on")
    .example("services nodes orders")
    .does(async ({ client, output, serviceId }, name: string) =>
      output.list(await take(client.services.nodes(await serviceId(name))), nodeColumns),
    );

  services
    .command("operations <service>")
    .description("what was done to it, newest first")
    .example("services operations orders")
    .does(async ({ client, output, serviceId }, name: string) =>
      output.list(await take(client.operations.list(await serviceId(name))), operationColumns),
    );
}

/** One line on the terminal, also when the message has line breaks or control characters. */
function textOf({ time, level, component, message }: LogLine): string {
  return printable(`${time} ${level.padEnd(7)} ${component} ${message}`);
}
