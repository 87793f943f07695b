import type { App } from "@holdfast/sdk/responses.ts";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { UsageError } from "../exit-code.ts";
import { appOf } from "../lookup.ts";
import { type EventFlags, showEvents, withEventFlags } from "./event-stream.ts";
import { type MetricFlags, showMetrics, withMetricFlags } from "./metrics.ts";
import { withLogs } from "./service-views.ts";

/** A hosted app by name or id. Throws NotFound, and UsageError for one that runs outside of the platform. */
async function hostedOf(context: Context, nameOrId: string): Promise<App> {
  const app = await appOf(context, nameOrId);
  if (app.hosted === null)
    throw new UsageError(`${app.name} runs outside of the platform, which has no logs and metrics of it`);
  return app;
}

/** Read-only commands of a hosted app. */
export function addAppViews(apps: CliCommand): void {
  const logs = apps
    .command("logs <app>")
    .description("show the newest lines that a hosted app printed, oldest first")
    .option("--node <id>", "machine; one that serves by default")
    .example("apps logs shop --follow");
  withLogs(logs, hostedOf);

  withMetricFlags(apps.command("metrics <app>"))
    .description("show charts of the machines of a hosted app")
    .example("apps metrics shop cpu memory --period 24h")
    .does(async (context, app: string, named: readonly string[], flags: MetricFlags) => {
      const { id } = await hostedOf(context, app);
      await showMetrics(context, { id, engine: "app" }, named, flags);
    });

  withEventFlags(apps.command("events <app>"))
    .description("show events of a hosted app, oldest first")
    .example("apps events shop --follow")
    .does(async (context, app: string, flags: EventFlags) => {
      const { id } = await appOf(context, app);
      await showEvents(context, { ...flags, service: id });
    });
}
