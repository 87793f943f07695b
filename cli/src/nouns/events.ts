import type { CliCommand } from "../command.ts";
import { omitUndefined } from "../flag-values.ts";
import { type EventFlags, showEvents, withEventFlags } from "./event-stream.ts";

export function addEvents(events: CliCommand): void {
  withEventFlags(events)
    .option("--service <service>", "only events of this service")
    .example("events --since 2026-01-31T00:00:00Z --type service.error")
    .example("events --follow --output json")
    .does(async (context, flags: EventFlags & { service?: string }) => {
      const { service: name, ...rest } = flags;
      const service = name === undefined ? undefined : await context.monitoredId(name);
      await showEvents(context, { ...rest, ...omitUndefined({ service }) });
    });
}
