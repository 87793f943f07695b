import type { LogLevel, LogLine } from "@holdfast/sdk/responses.ts";
import { NotFound } from "@holdfast/sdk/errors.ts";
import { Option } from "commander";
import { nodeIdOf, nodeLabels } from "../lookup.ts";
import { nodeColumns } from "./service-fields.ts";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { UsageError } from "../exit-code.ts";
import { integer, omitUndefined, timeOrAge, take } from "../flag-values.ts";
import { printable } from "../printable.ts";
import { type EventFlags, showEvents, withEventFlags } from "./event-stream.ts";

const operationColumns = ["id", "type", "status", "created_at", "step", "progress_pct", "finished_at"];

interface LogFlags {
  readonly since?: string;
  readonly level?: LogLevel;
  readonly limit?: number;
  readonly node?: string;
  readonly grep?: string;
  readonly component?: "slow";
  readonly follow?: boolean;
}

/** A service or an app whose log is shown. */
interface LogOwner {
  readonly id: string;
  /** Names of its nodes by id; a node without one is shown by its id. */
  readonly labels?: ReadonlyMap<string, string>;
  /** The id of a node of the flag --node; the flag has ids by default. */
  nodeId?(node: string): Promise<string>;
  /** The reason for which it has no log. */
  readonly absence?: string | undefined;
}

/** Flags and action of the command `logs` of a noun. */
export function withLogs(command: CliCommand, find: (context: Context, name: string) => Promise<LogOwner>): CliCommand {
  return command
    .option("--since <time>", "only lines since this time: RFC 3339, a date, or an age such as 30m or 7d", timeOrAge)
    .option("--grep <text>", "only lines that contain this text, in upper or lower case")
    .addOption(new Option("--level <level>", "minimum level").choices(["debug", "info", "warning", "error"]))
    .option("-n, --limit <lines>", "number of newest lines, at most 200; 100 by default, all with --since", integer)
    .option("--follow", "show new lines as they come")
    .does(async (context, name: string, flags: LogFlags) => {
      const owner = await find(context, name);
      await explained(showLogs(context, owner, flags), owner.absence);
    });
}

/** The result of a request; if the API has nothing for the object, the error is the reason, if there is one. */
export async function explained(request: Promise<void>, absence: string | undefined): Promise<void> {
  try {
    await request;
  } catch (error) {
    throw error instanceof NotFound && absence !== undefined ? new UsageError(absence) : error;
  }
}

/** Read-only commands of a service. */
export function addServiceViews(services: CliCommand): void {
  const logs = services
    .command("logs <service>")
    .description("show the newest lines of the engine's log, oldest first")
    .option("--node <node>", "node by its name or id; the primary by default")
    .addOption(
      new Option("--component <name>", "slow: statements of a MySQL over its long_query_time").choices(["slow"]),
    )
    .example("services logs orders --level warning")
    .example("services logs orders --follow")
    .example("services logs orders --since 30m --grep deadlock")
    .example("services logs shop --component slow");
  withLogs(logs, async (context, name) => {
    const id = await context.serviceId(name);
    return { id, labels: await nodeLabels(context, id), nodeId: (node) => nodeIdOf(context, id, node) };
  });

  withEventFlags(services.command("events <service>"))
    .description("show events of a service, oldest first; of a deleted service by its id")
    .example("services events orders --follow")
    .does(async (context, name: string, flags: EventFlags) => {
      const id = await context.serviceId(name);
      await showEvents(context, { ...flags, service: id });
    });

  services
    .command("nodes <service>")
    .description("list the nodes of a service")
    .example("services nodes orders")
    .does(async ({ client, output, serviceId }, name: string) =>
      output.list(await take(client.services.nodes(await serviceId(name))), nodeColumns),
    );

  services
    .command("operations <service>")
    .description("list operations of a service, newest first")
    .example("services operations orders")
    .does(async ({ client, output, serviceId }, name: string) =>
      output.list(await take(client.operations.list(await serviceId(name))), operationColumns),
    );
}

/** Maximum number of lines of one page of the API. */
const maxPageSize = 200;

/** Shows the newest lines, or all since a time, then with --follow each new one. */
async function showLogs(
  { client, output, signal }: Context,
  { id, labels, nodeId: nodeIdOfFlag }: LogOwner,
  { since, level, limit, node, grep, component, follow }: LogFlags,
): Promise<void> {
  const isAll = since !== undefined && limit === undefined;
  const nodeId = node === undefined ? undefined : ((await nodeIdOfFlag?.(node)) ?? node);
  const filter = omitUndefined({
    since,
    level,
    node_id: nodeId,
    contains: grep,
    component,
    newest: isAll ? undefined : true,
  });
  const page = { limit: isAll ? maxPageSize : (limit ?? 100), signal };
  const show = (line: LogLine) => output.entry(line, textOf(line, labels?.get(line.node_id)));
  if (follow === true) {
    for await (const line of client.services.followLogs(id, filter, page)) show(line);
    return;
  }
  for (let cursor: string | undefined; ; ) {
    const found = await client.services.logs(id, filter, { ...page, cursor });
    for (const line of found.lines) show(line);
    if (!isAll || !found.has_more) return;
    cursor = found.next_cursor;
  }
}

/** One line of text; line breaks and control characters of the message are replaced. */
function textOf({ time, node_id, level, message }: LogLine, node = node_id): string {
  return printable(`${time} ${node} ${level.padEnd(7)} ${message}`);
}
