import type { App } from "@holdfast/sdk/responses.ts";
import type { CliCommand } from "../command.ts";
import { appOf } from "../lookup.ts";
import { type EventFlags, showEvents, withEventFlags } from "./event-stream.ts";
import { type MetricFlags, showMetrics, withMetricFlags } from "./metrics.ts";
import { explained, withLogs } from "./service-views.ts";

/** The reason for which an app has no logs and metrics; undefined for a hosted app. */
function absenceOf({ name, hosted }: App): string | undefined {
  return hosted === null ? `${name} runs outside of the platform, which has no logs and metrics of it` : undefined;
}

/** Read-only commands of a hosted app. */
export function addAppViews(apps: CliCommand): void {
  const logs = apps
    .command("logs <app>")
    .description("show the newest lines that a hosted app printed, oldest first")
    .option("--node <id>", "machine; one that serves by default")
    .example("apps logs shop --follow");
  withLogs(logs, async (context, name) => {
    const app = await appOf(context, name);
    return { id: app.id, absence: absenceOf(app) };
  });

  withMetricFlags(apps.command("metrics <app>"))
    .description("show charts of the machines of a hosted app")
    .example("apps metrics shop cpu memory --period 24h")
    .does(async (context, app: string, named: readonly string[], flags: MetricFlags) => {
      const found = await appOf(context, app);
      const charts = showMetrics(context, { id: found.id, engine: "app" }, named, flags);
      await explained(charts, absenceOf(found));
    });

  withEventFlags(apps.command("events <app>"))
    .description("show events of a hosted app, oldest first")
    .example("apps events shop --follow")
    .does(async (context, app: string, flags: EventFlags) => {
      const { id } = await appOf(context, app);
      await showEvents(context, { ...flags, service: id });
    });
}
