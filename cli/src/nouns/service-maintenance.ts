import type { Maintenance, MaintenanceWindow, Weekday } from "@holdfast/sdk/responses.ts";
import { InvalidArgumentError } from "commander";
import type { CliCommand } from "../command.ts";
import { serviceFields } from "./service-fields.ts";
import { waitForService, type WaitFlags, withWait } from "./service-wait.ts";

const days: readonly Weekday[] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const updateColumns = ["id", "kind", "title", "urgent", "apply_at", "blocked_reason", "no_snapshot_reason"];
const operationFields = ["id", "type", "status", "step", "progress_pct", "created_at"];

interface ApplyFlags extends WaitFlags {
  readonly yes?: boolean;
  readonly acceptTextOrderChange?: boolean;
}

/** Parses a maintenance window such as "sunday 3": day and hour in UTC. */
export function windowText(text: string): MaintenanceWindow {
  const [, name = "", hour = ""] = /^([a-z]+)[ :](\d{1,2})$/.exec(text.toLowerCase()) ?? [];
  const day = days.find((each) => each === name);
  if (day === undefined || Number(hour) > 23)
    throw new InvalidArgumentError('A window is a day and an hour in UTC, such as "sunday 3".');
  return { day, hour: Number(hour) };
}

/** Commands for the maintenance window and pending updates of a service. */
export function addServiceMaintenance(services: CliCommand): void {
  const maintenance = services.command("maintenance").description("maintenance window and pending updates");

  maintenance
    .command("show <service>")
    .description("show pending updates, and the time when they are applied automatically")
    .example("services maintenance show orders")
    .does(async ({ client, output, serviceId }, name: string) => {
      const found = await client.services.maintenance(await serviceId(name));
      if (output.format !== "table") return output.show(found);
      output.show(summaryOf(found));
      output.list(found.updates, updateColumns);
    });

  withWait(maintenance.command("apply <service> [updates...]"))
    .description("apply pending updates now: those named, or all; the engine restarts")
    .option("--yes", "do not ask for confirmation")
    .option(
      "--accept-text-order-change",
      "also apply updates that change the sort order of text; indexes on text must be rebuilt afterwards",
    )
    .example("services maintenance apply orders --wait")
    .does(async (context, name: string, updates: string[], flags: ApplyFlags) => {
      const service = await context.service(name);
      await context.confirm(`Apply updates to ${service.name} now? Its engine restarts.`, flags.yes);
      const operation = await context.client.services.applyMaintenance(service.id, updates, {
        acceptTextOrderChange: flags.acceptTextOrderChange === true,
      });
      if (flags.wait !== true) return context.output.show(operation, operationFields);
      const done = await waitForService(context, { ...service, operation }, "Running", flags.timeout);
      context.output.show(done ?? service, serviceFields);
    });

  maintenance
    .command("window <service> [window]")
    .description('set the window of two hours in which updates may start, in UTC, such as "sunday 3"')
    .option("--default", "use the default window, which is derived from the id")
    .example('services maintenance window orders "sunday 3"')
    .example("services maintenance window orders --default")
    .does(async ({ client, output, serviceId }, name: string, text: string | undefined, flags: { default?: true }) => {
      if ((text === undefined) === (flags.default === undefined))
        throw new InvalidArgumentError('use a window such as "sunday 3", or --default');
      const window = text === undefined ? null : windowText(text);
      const changed = await client.services.update(await serviceId(name), { maintenance_window: window });
      output.show(changed, ["name", "maintenance_window"]);
    });
}

// oxlint-disable-next-line holdfast/names -- a member of the API
function summaryOf({ window, window_is_default, next_window_from, image, engine_version, held }: Maintenance) {
  const origin = window_is_default ? " (by default)" : "";
  return {
    window: `${window.day} ${window.hour}:00 UTC${origin}`,
    next_window_from,
    image,
    engine_version,
    // oxlint-disable-next-line holdfast/names -- a member of the API
    ...(held === null ? {} : { held }),
  };
}
