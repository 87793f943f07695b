import type { EventType, PlatformEvent } from "@holdfast/sdk/event-types.ts";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { integer, omitUndefined, timeOrAge, take } from "../flag-values.ts";
import { printable } from "../printable.ts";
import { asText } from "../table.ts";

export interface EventFlags {
  /** Type of events; the API refuses unknown ones. */
  readonly type?: EventType;
  readonly since?: string;
  readonly limit?: number;
  readonly follow?: boolean;
}

/** Adds the flags of all lists of events. */
export function withEventFlags(command: CliCommand): CliCommand {
  return command
    .option("--type <event>", "only events of this type, such as service.running")
    .option("--since <time>", "all events since this time: RFC 3339, a date, or an age such as 30m or 7d", timeOrAge)
    .option("-n, --limit <count>", "number of newest events; 100 by default, all with --since", integer)
    .option("--follow", "show new events as they come, until Ctrl-C");
}

/** Maximum number of entries of one page of the API. */
const maxPageSize = 200;

/** Shows the newest events, or all events since a time, oldest first. `service` is an id. */
export async function showEvents(
  { client, output, signal }: Context,
  { type, since, limit, follow, service }: EventFlags & { readonly service?: string },
): Promise<void> {
  const count = limit ?? (since === undefined ? 100 : Infinity);
  const filter = omitUndefined({ type, since, service });
  const show = (event: PlatformEvent) => output.entry(event, textOf(event));
  // More than a page is read from its oldest entry on.
  const newest = count <= maxPageSize ? { ...filter, newest: true } : filter;
  const page = { limit: Math.min(count, maxPageSize) };
  if (follow === true) {
    for await (const event of client.events.follow(newest, { ...page, signal })) show(event);
    return;
  }
  for (const event of (await take(client.events.list(newest, page))).slice(-count)) show(event);
}

function textOf({ timestamp, event_type: type, data }: PlatformEvent): string {
  return printable(`${timestamp} ${type.padEnd(16)} ${asText(withoutHealthyChecks(data))}`);
}

/** The data of an event about health with the failing checks alone: a service has some for each node. */
function withoutHealthyChecks(data: object): object {
  if (!("checks" in data) || !Array.isArray(data.checks)) return data;
  const { checks, ...rest } = data;
  const failing = checks.filter((check: { readonly status?: string }) => check.status !== "healthy");
  return failing.length === 0 ? rest : { ...rest, checks: failing };
}
