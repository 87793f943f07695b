import type { EventType, PlatformEvent } from "../../event-types.ts";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { omitUndefined, integer } from "../flag-values.ts";
import { asText, printable } from "../table.ts";

export interface EventFlags {
  /** Type of events; the API refuses unknown ones. */
  readonly type?: EventType;
  readonly since?: string;
  readonly limit: number;
  readonly follow?: boolean;
}

/** Adds the flags of all lists of events. */
export function withEventFlags(command: CliCommand): CliCommand {
  return command
    .option("--type <event>", "only of this type, such as service.running")
    .option("--since <time>", "RFC 3339")
    .option("--limit <count>", "maximum number of entries", integer, 1_000)
    .option("--follow", "show new events as they come, until Ctrl-C");
}

/** Shows events, oldest first. `service` is an id. */
export async function showEvents(
  { client, output, signal }: Context,
  { type, since, limit, follow, service }: EventFlags & { readonly service?: string },
): Promise<void> {
  const filter = omitUndefined({ type, since, service });
  let remaining = follow === true ? Infinity : limit;
  const events = follow === true ? client.events.follow(filter, { signal }) : client.events.list(filter);
  for await (const event of events) {
    output.entry(event, textOf(event));
    remaining -= 1;
    if (remaining <= 0) break;
  }
}

function textOf({ timestamp, event_type: type, data }: PlatformEvent): string {
  return printable(`${timestamp} ${type.padEnd(16)} ${asText(data)}`);
}
