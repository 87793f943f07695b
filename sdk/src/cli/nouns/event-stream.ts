import type { EventType, PlatformEvent } from "../../event-types.ts";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { given, wholeNumber } from "../flag-values.ts";
import { asText, printable } from "../table.ts";

export interface EventFlags {
  /** The API says which it knows. */
  readonly type?: EventType;
  readonly since?: string;
  readonly limit: number;
  readonly follow?: boolean;
}

/** Adds the flags that every list of events takes. */
export function withEventFlags(command: CliCommand): CliCommand {
  return command
    .option("--type <event>", "only of this type, such as service.running")
    .option("--since <time>", "RFC 3339")
    .option("--limit <count>", "at most so many", wholeNumber, 1_000)
    .option("--follow", "go on as they come, until Ctrl-C");
}

/** Oldest first. `service` is an id. */
export async function showEvents(
  { client, output, signal }: Context,
  { type, since, limit, follow, service }: EventFlags & { readonly service?: string },
): Promise<void> {
  const filter = given({ type, since, service });
  let left = follow === true ? Infinity : limit;
  const events = follow === true ? client.events.follow(filter, { signal }) : client.events.list(filter);
  for await (const event of events) {
    output.entry(event, textOf(event));
    left -= 1;
    if (left <= 0) break;
  }
}

function textOf({ timestamp, event_type: type, data }: PlatformEvent): string {
  return printable(`${timestamp} ${type.padEnd(16)} ${asText(data)}`);
}
