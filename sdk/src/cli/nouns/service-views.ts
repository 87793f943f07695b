import type { LogLevel, LogLine } from "../../responses.ts";
import { Option } from "commander";
import { nodeColumns } from "./service-fields.ts";
import type { CliCommand } from "../command.ts";
import { omitUndefined, take, integer } from "../flag-values.ts";
import { printable } from "../table.ts";
import { type EventFlags, showEvents, withEventFlags } from "./event-stream.ts";

const operationColumns = ["id", "type", "status", "step", "progress_pct", "created_at", "finished_at"];

interface LogFlags {
  readonly since?: string;
  readonly level?: LogLevel;
  readonly limit: number;
  readonly follow?: boolean;
}

/** Read-only commands of a service. */
export function addServiceViews(services: CliCommand): void {
  services
    .command("logs <service>")
    .description("log of the engine")
    .option("--since <time>", "RFC 3339")
    .addOption(new Option("--level <level>", "minimum level").choices(["debug", "info", "warning", "error"]))
    .option("--limit <lines>", "maximum number of lines, at most 200", integer, 100)
    .option("--follow", "show new lines as they come")
    .example("services logs orders --level warning")
    .example("services logs orders --follow")
    .does(async ({ client, output, serviceId, signal }, name: string, flags: LogFlags) => {
      const id = await serviceId(name);
      const query = omitUndefined({ since: flags.since, level: flags.level });
      const show = (line: LogLine) => output.entry(line, textOf(line));
      if (flags.follow === true) {
        for await (const line of client.services.followLogs(id, query, { signal })) show(line);
      } else {
        for (const line of (await client.services.logs(id, query, { limit: flags.limit })).lines) show(line);
      }
    });

  withEventFlags(services.command("events <service>"))
    .description("events of a service, oldest first; also of a deleted one, by its id")
    .example("services events orders --follow")
    .does(async (context, name: string, flags: EventFlags) => {
      const id = await context.serviceId(name);
      await showEvents(context, { ...flags, service: id });
    });

  services
    .command("nodes <service>")
    .description("nodes of a service")
    .example("services nodes orders")
    .does(async ({ client, output, serviceId }, name: string) =>
      output.list(await take(client.services.nodes(await serviceId(name))), nodeColumns),
    );

  services
    .command("operations <service>")
    .description("operations of a service, newest first")
    .example("services operations orders")
    .does(async ({ client, output, serviceId }, name: string) =>
      output.list(await take(client.operations.list(await serviceId(name))), operationColumns),
    );
}

/** One line of text; line breaks and control characters of the message are replaced. */
function textOf({ time, level, component, message }: LogLine): string {
  return printable(`${time} ${level.padEnd(7)} ${component} ${message}`);
}
