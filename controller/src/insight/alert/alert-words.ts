import {
  AlertCondition as ConditionEnum,
  AlertNoData,
  AlertSeverity as SeverityEnum,
} from "@holdfast/proto/holdfast/v1/alert_pb.ts";
import type { AlertCondition, AlertRuleSpec, AlertSeverity } from "./alert-rule.ts";

// Words of the store beside those of the protos.

const conditions = { gt: ConditionEnum.GT, lt: ConditionEnum.LT } as const satisfies Record<
  AlertCondition,
  ConditionEnum
>;
const severities = {
  info: SeverityEnum.INFO,
  warning: SeverityEnum.WARNING,
  critical: SeverityEnum.CRITICAL,
} as const satisfies Record<AlertSeverity, SeverityEnum>;
const silences = { ignore: AlertNoData.IGNORE, fire: AlertNoData.FIRE } as const satisfies Record<
  AlertRuleSpec["noData"],
  AlertNoData
>;

export const conditionEnum = (word: AlertCondition) => conditions[word];
export const severityEnum = (word: AlertSeverity) => severities[word];
export const noDataEnum = (word: AlertRuleSpec["noData"]) => silences[word];

/** Of a request: unspecified is `gt`, which validation has refused before. */
export function conditionOf(value: ConditionEnum): AlertCondition {
  return value === ConditionEnum.LT ? "lt" : "gt";
}

export function severityOf(value: SeverityEnum | undefined): AlertSeverity {
  if (value === SeverityEnum.INFO) return "info";
  return value === SeverityEnum.CRITICAL ? "critical" : "warning";
}

export function noDataOf(value: AlertNoData | undefined): AlertRuleSpec["noData"] {
  return value === AlertNoData.FIRE ? "fire" : "ignore";
}
