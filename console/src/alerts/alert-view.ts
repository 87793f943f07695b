import type { PlatformEvent } from "@holdfast/sdk/event-types.ts";
import type { AlertRuleChange, NewAlertRule } from "@holdfast/sdk/requests.ts";
import type { AlertCondition, AlertNoData, AlertRule, AlertSeverity, AlertState } from "@holdfast/sdk/responses.ts";
import { durationText, metricText } from "../format.ts";
import type { Tone } from "../tone.ts";

/** The input of the form for a rule. */
export interface RuleInput {
  readonly name: string;
  readonly metric: string;
  readonly condition: AlertCondition;
  readonly threshold: string;
  readonly minutes: string;
  readonly severity: AlertSeverity;
  /** Id of a channel; empty for the default channel of the organization. */
  readonly channel: string;
  readonly noData: AlertNoData;
}

export const conditions: readonly (readonly [AlertCondition, string])[] = [
  ["gt", "is above"],
  ["lt", "is below"],
];

export const severities: readonly (readonly [AlertSeverity, string])[] = [
  ["info", "Information"],
  ["warning", "Warning"],
  ["critical", "Critical"],
];

export const noDataEffects: readonly (readonly [AlertNoData, string])[] = [
  ["ignore", "Nothing"],
  ["fire", "An alert after 60 s"],
];

/** The input for a change of a rule, or for a new rule on a metric. */
export function ruleInputOf(rule: AlertRule | undefined, metric: string): RuleInput {
  return {
    name: rule?.name ?? "",
    metric: rule?.metric ?? metric,
    condition: rule?.condition ?? "gt",
    threshold: rule === undefined ? "" : String(rule.threshold),
    minutes: String(rule?.duration_minutes ?? 5),
    severity: rule?.severity ?? "warning",
    channel: rule?.notification_channel_id ?? "",
    noData: rule?.no_data ?? "ignore",
  };
}

/** The number in a text; an empty text is no number, so that the API's error names the field. */
function numberOf(text: string): number {
  return text.trim() === "" ? Number.NaN : Number(text);
}

/** The request of the form for a new rule. Without a name the platform names it after its condition. */
export function newRuleOf(input: RuleInput): NewAlertRule {
  const { name, metric, condition, severity, channel, noData } = input;
  return {
    ...(name.trim() !== "" && { name: name.trim() }),
    metric,
    condition,
    threshold: numberOf(input.threshold),
    duration_minutes: numberOf(input.minutes),
    severity,
    ...(channel !== "" && { notification_channel_id: channel }),
    no_data: noData,
  };
}

/** The fields that the form changes: a change of the condition would resolve a firing alert. */
export function ruleChangeOf(input: RuleInput, rule: AlertRule): AlertRuleChange {
  const threshold = numberOf(input.threshold);
  const minutes = numberOf(input.minutes);
  const channel = input.channel === "" ? null : input.channel;
  return {
    ...(input.name !== rule.name && { name: input.name }),
    ...(input.condition !== rule.condition && { condition: input.condition }),
    ...(threshold !== rule.threshold && { threshold }),
    ...(minutes !== rule.duration_minutes && { duration_minutes: minutes }),
    ...(input.severity !== rule.severity && { severity: input.severity }),
    ...(channel !== rule.notification_channel_id && { notification_channel_id: channel }),
    ...(input.noData !== rule.no_data && { no_data: input.noData }),
  };
}

/** The rule of the form as charts draw it; undefined without a threshold. */
export function thresholdOf(input: RuleInput) {
  const { name, metric, condition } = input;
  const threshold = numberOf(input.threshold);
  if (!Number.isFinite(threshold)) return undefined;
  return { name: name || "Threshold", metric, condition, threshold, paused: false };
}

/** The condition of a rule: "above 80% for 5 min". */
export function conditionText(
  { condition, threshold, duration_minutes: minutes }: Pick<AlertRule, "condition" | "threshold" | "duration_minutes">,
  unit: string,
): string {
  const limit = `${condition === "gt" ? "above" : "below"} ${metricText(threshold, unit)}`;
  return minutes === 0 ? limit : `${limit} for ${minutes} min`;
}

// biome-ignore format: a table, aligned so that it reads as one
const states: Readonly<Record<AlertState, readonly [text: string, tone: Tone]>> = {
  ok:      ["ok",      "good"],
  pending: ["pending", "warn"],
  firing:  ["firing",  "bad"],
  no_data: ["no data", "bad"],
  paused:  ["paused",  "none"],
};

export function stateOf(state: AlertState): { readonly text: string; readonly tone: Tone } {
  const [text, tone] = states[state];
  return { text, tone };
}

// biome-ignore format: a table, aligned so that it reads as one
const severityTones: Readonly<Record<AlertSeverity, Tone>> = { info: "none", warning: "warn", critical: "bad" };

export function severityTone(severity: AlertSeverity): Tone {
  return severityTones[severity];
}

type AlertEvent = PlatformEvent<"alert.fired" | "alert.resolved">;

/** One alert from its firing to its end. */
export interface Firing {
  readonly id: string;
  readonly name: string;
  readonly metric: string;
  readonly severity: AlertSeverity;
  /** The value that fired it; null without data. */
  readonly value: number | null;
  readonly firedAt: string;
  /** Time and reason of its end; undefined while it fires. */
  readonly end: { readonly at: string; readonly reason: string } | undefined;
}

/**
 * The alerts of these events, newest first. An alert whose first event is not among them has the value of the
 * event that ended it.
 */
export function firingsOf(events: readonly AlertEvent[]): readonly Firing[] {
  const firings = new Map<string, Firing>();
  for (const { event_type: type, data } of events) {
    const before = firings.get(data.id);
    const end = "reason" in data ? { at: data.resolved_at, reason: endText(data.reason) } : before?.end;
    const value = type === "alert.fired" || before === undefined ? data.current_value : before.value;
    firings.set(data.id, {
      id: data.id,
      name: data.alert_name,
      metric: data.metric,
      severity: severityOf(data.severity),
      value,
      firedAt: data.fired_at,
      end,
    });
  }
  return [...firings.values()].sort((one, other) => other.firedAt.localeCompare(one.firedAt));
}

/** The severity of an event, whose text may be of a newer version. */
function severityOf(text: string): AlertSeverity {
  const [severity = "info"] = severities.find(([each]) => each === text) ?? [];
  return severity;
}

const reasons: ReadonlyMap<string, string> = new Map([
  ["condition_false", "the condition ended"],
  ["rule_changed", "the rule was changed"],
  ["rule_paused", "the rule was paused"],
  ["rule_deleted", "the rule was deleted"],
  ["service_stopped", "the service was stopped"],
  ["service_deleted", "the service was deleted"],
]);

function endText(reason: string): string {
  return reasons.get(reason) ?? reason.replaceAll("_", " ");
}

/** How long an alert fired: "5 min, the condition ended". */
export function endOf({ firedAt, end }: Firing): string {
  if (end === undefined) return "still firing";
  return `${durationText((Date.parse(end.at) - Date.parse(firedAt)) / 1_000)}, ${end.reason}`;
}
