import type { AlertCondition, AlertNoData, AlertSeverity } from "../../answers.ts";
import { InvalidArgumentError, Option } from "commander";
import type { AlertRuleChange } from "../../inputs.ts";
import type { CliCommand } from "../command.ts";
import { given, minutes, take } from "../flag-values.ts";

const columns = ["id", "name", "severity", "duration_minutes", "notification_channel_id", "state", "since", "value"];
const firingColumns = ["service_name", "alert_name", "severity", "state", "current_value", "fired_at", "rule_id"];
const eventColumns = ["timestamp", "event_type", "data"];

interface RuleFlags {
  readonly name?: string;
  readonly severity?: AlertSeverity;
  readonly for?: number;
  readonly channel?: string | false;
  readonly onSilence?: AlertNoData;
  readonly paused?: boolean;
}

interface LimitFlags {
  readonly gt?: number;
  readonly lt?: number;
}

type ChangeFlags = RuleFlags & LimitFlags;

const severity = () => new Option("--severity <severity>", "how bad it is").choices(["info", "warning", "critical"]);
const onSilence = () =>
  new Option("--on-silence <what>", "what 60 s without a sample mean: nothing, or an alert").choices([
    "ignore",
    "fire",
  ]);
const above = () => new Option("--gt <number>", "it fires above this").argParser(numberOf).conflicts("lt");
const below = () => new Option("--lt <number>", "it fires below this").argParser(numberOf);

export function addAlerts(alerts: CliCommand): void {
  alerts
    .command("rules <service>")
    .description("the rules of a service with their states")
    .example("alerts rules orders")
    .does(async ({ client, output, serviceId }, name: string) =>
      output.list(await take(client.alerts.rules(await serviceId(name))), columns),
    );

  alerts
    .command("create <service>")
    .description("make a rule: it fires when the metric is above, or below, a number for so long")
    .requiredOption("--metric <metric>", "a metric of the catalog")
    .addOption(above())
    .addOption(below())
    .option("--name <name>", "what it is called; metric, condition and threshold when left out")
    .addOption(severity())
    .option("--for <time>", "how long the condition must hold at every sample, such as 5m or 1h", minutes)
    .option("--channel <channel>", "where it is told; the organization's default channel when left out")
    .addOption(onSilence())
    .option("--paused", "it does nothing yet")
    .example("alerts create orders --metric disk --gt 80 --for 10m --severity critical --channel 019a...")
    .does(async ({ client, output, serviceId }, name: string, flags: ChangeFlags & { metric: string }) => {
      const limit = limitOf(flags);
      if (limit === undefined) throw new InvalidArgumentError("say --gt or --lt with a number");
      const rule = { metric: flags.metric, ...limit, ...fieldsOf(flags) };
      output.show(await client.alerts.createRule(await serviceId(name), rule));
    });

  alerts
    .command("get <service> <rule>")
    .description("one rule with its state")
    .example("alerts get orders 019a...")
    .does(async ({ client, output, serviceId }, name: string, rule: string) =>
      output.show(await client.alerts.getRule(await serviceId(name), rule)),
    );

  alerts
    .command("update <service> <rule>")
    .description("change a rule; one that fires is resolved when what it asks changes")
    .option("--name <name>", "another name")
    .addOption(above())
    .addOption(below())
    .addOption(severity())
    .option("--for <time>", "how long the condition must hold, such as 5m or 1h", minutes)
    .option("--channel <channel>", "another channel")
    .option("--no-channel", "the organization's default channel")
    .addOption(onSilence())
    .option("--paused", "it does nothing until it is resumed")
    .option("--no-paused", "it is evaluated again")
    .example("alerts update orders 019a... --gt 85")
    .does(async ({ client, output, serviceId }, name: string, rule: string, flags: ChangeFlags) => {
      const change = { ...limitOf(flags), ...fieldsOf(flags) };
      output.show(await client.alerts.updateRule(await serviceId(name), rule, change));
    });

  alerts
    .command("delete <service> <rule>")
    .description("end a rule; one that fires is resolved")
    .option("--yes", "do not ask")
    .example("alerts delete orders 019a...")
    .does(async ({ client, output, serviceId, confirm }, name: string, rule: string, { yes }: { yes?: boolean }) => {
      const id = await serviceId(name);
      await confirm(`Delete the rule ${rule} of ${name}?`, yes);
      await client.alerts.deleteRule(id, rule);
      output.say(`${rule} is deleted`);
    });

  alerts
    .command("firing")
    .description("all alerts of the organization that fire now")
    .example("alerts firing")
    .does(async ({ client, output }) => output.list(await take(client.alerts.firing()), firingColumns));

  alerts
    .command("events <service>")
    .description("when its rules fired and were resolved, oldest first")
    .option("--since <time>", "from this time on")
    .example("alerts events orders")
    .does(async ({ client, output, serviceId }, name: string, { since }: { since?: string }) =>
      output.list(await take(client.alerts.events(await serviceId(name), given({ since }))), eventColumns),
    );

  alerts
    .command("default-channel [channel]")
    .description("show, or with an argument set, the channel of rules that name none")
    .option("--none", "from now on there is none")
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
  return given({
    name: flags.name,
    severity: flags.severity,
    duration_minutes: flags.for,
    notification_channel_id: flags.channel === false ? null : flags.channel,
    no_data: flags.onSilence,
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
