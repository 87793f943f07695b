import type { AlertCondition, AlertNoData, AlertSeverity } from "@holdfast/sdk/responses.ts";
import { InvalidArgumentError, Option } from "commander";
import type { AlertRuleChange } from "@holdfast/sdk/requests.ts";
import type { CliCommand } from "../command.ts";
import { omitUndefined, minutes, take, timeOrAge } from "../flag-values.ts";

const columns = ["id", "name", "severity", "duration_minutes", "notification_channel_id", "state", "since", "value"];
const firingColumns = ["service_name", "alert_name", "severity", "state", "current_value", "fired_at", "rule_id"];
const eventColumns = ["timestamp", "event_type", "data"];

interface RuleFlags {
  readonly name?: string;
  readonly severity?: AlertSeverity;
  readonly for?: number;
  readonly channel?: string | false;
  readonly onNoData?: AlertNoData;
  readonly onSilence?: AlertNoData;
  readonly paused?: boolean;
}

interface LimitFlags {
  readonly gt?: number;
  readonly lt?: number;
}

type ChangeFlags = RuleFlags & LimitFlags;

const severity = () =>
  new Option("--severity <severity>", "severity of the alert").choices(["info", "warning", "critical"]);
const noDataEffects = ["ignore", "fire"];
const onNoData = () =>
  new Option("--on-no-data <effect>", "effect of 60 s without a sample: nothing, or an alert").choices(noDataEffects);
/** Former name of `--on-no-data`. */
const onSilence = () => new Option("--on-silence <effect>").choices(noDataEffects).conflicts("onNoData").hideHelp();
const above = () => new Option("--gt <number>", "fire above this value").argParser(numberOf).conflicts("lt");
const below = () => new Option("--lt <number>", "fire below this value").argParser(numberOf);

export function addAlerts(alerts: CliCommand): void {
  alerts
    .command("rules <service>")
    .description("list the alert rules of a service with their states")
    .example("alerts rules orders")
    .does(async ({ client, output, monitoredId }, name: string) =>
      output.list(await take(client.alerts.rules(await monitoredId(name))), columns),
    );

  alerts
    .command("create <service>")
    .description("create a rule, which fires when a metric is above or below a value for some time")
    .requiredOption("--metric <metric>", "metric of the catalog")
    .addOption(above())
    .addOption(below())
    .option("--name <name>", "name of the rule; metric, condition and threshold by default")
    .addOption(severity())
    .option("--for <time>", "time for which the condition must be true at every sample, such as 5m or 1h", minutes)
    .option("--channel <channel>", "notification channel; the organization's default channel by default")
    .addOption(onNoData())
    .addOption(onSilence())
    .option("--paused", "create the rule paused")
    .example("alerts create orders --metric disk --gt 80 --for 10m --severity critical --channel 019a...")
    .does(async ({ client, output, monitoredId }, name: string, flags: ChangeFlags & { metric: string }) => {
      const limit = limitOf(flags);
      if (limit === undefined) throw new InvalidArgumentError("--gt or --lt is required, with a number");
      const rule = { metric: flags.metric, ...limit, ...fieldsOf(flags) };
      output.show(await client.alerts.createRule(await monitoredId(name), rule));
    });

  alerts
    .command("get <service> <rule>")
    .description("show a rule with its state")
    .example("alerts get orders 019a...")
    .does(async ({ client, output, monitoredId }, name: string, rule: string) =>
      output.show(await client.alerts.getRule(await monitoredId(name), rule)),
    );

  alerts
    .command("update <service> <rule>")
    .description("change a rule; a firing alert is resolved when the condition changes")
    .option("--name <name>", "new name")
    .addOption(above())
    .addOption(below())
    .addOption(severity())
    .option("--for <time>", "time for which the condition must be true, such as 5m or 1h", minutes)
    .option("--channel <channel>", "new channel")
    .option("--no-channel", "use the organization's default channel")
    .addOption(onNoData())
    .addOption(onSilence())
    .option("--paused", "pause the rule")
    .option("--no-paused", "resume the rule")
    .example("alerts update orders 019a... --gt 85")
    .does(async ({ client, output, monitoredId }, name: string, rule: string, flags: ChangeFlags) => {
      const change = { ...limitOf(flags), ...fieldsOf(flags) };
      output.show(await client.alerts.updateRule(await monitoredId(name), rule, change));
    });

  alerts
    .command("delete <service> <rule>")
    .description("delete a rule; its firing alert is resolved")
    .option("--yes", "do not ask for confirmation")
    .example("alerts delete orders 019a...")
    .does(async ({ client, output, monitoredId, confirm }, name: string, rule: string, { yes }: { yes?: boolean }) => {
      const id = await monitoredId(name);
      await confirm(`Delete the rule ${rule} of ${name}?`, yes);
      await client.alerts.deleteRule(id, rule);
      output.info(`${rule} is deleted`);
    });

  alerts
    .command("firing")
    .description("list firing alerts of the organization")
    .example("alerts firing")
    .does(async ({ client, output }) => output.list(await take(client.alerts.firing()), firingColumns));

  alerts
    .command("events <service>")
    .description("show events of fired and resolved alerts, oldest first")
    .option("--since <time>", "only events since this time: RFC 3339, a date, or an age such as 30m or 7d", timeOrAge)
    .example("alerts events orders")
    .does(async ({ client, output, monitoredId }, name: string, { since }: { since?: string }) =>
      output.list(await take(client.alerts.events(await monitoredId(name), omitUndefined({ since }))), eventColumns),
    );

  alerts
    .command("default-channel [channel]")
    .description("show or set the channel of rules without one")
    .option("--none", "remove the default channel")
    .example("alerts default-channel 019a...")
    .does(async ({ client, output }, channel: string | undefined, { none }: { none?: boolean }) =>
      output.show(
        channel === undefined && none !== true
          ? await client.alerts.defaultChannel()
          : await client.alerts.setDefaultChannel(none === true ? null : (channel ?? null)),
      ),
    );
}

function fieldsOf(flags: RuleFlags): Omit<AlertRuleChange, "condition" | "threshold"> {
  return omitUndefined({
    name: flags.name,
    severity: flags.severity,
    duration_minutes: flags.for,
    notification_channel_id: flags.channel === false ? null : flags.channel,
    no_data: flags.onNoData ?? flags.onSilence,
    paused: flags.paused,
  });
}

function limitOf({ gt, lt }: LimitFlags): { condition: AlertCondition; threshold: number } | undefined {
  if (gt !== undefined) return { condition: "gt", threshold: gt };
  return lt === undefined ? undefined : { condition: "lt", threshold: lt };
}

function numberOf(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) throw new InvalidArgumentError("it is not a number");
  return value;
}
