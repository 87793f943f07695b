import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  AlertCondition as ConditionEnum,
  AlertNoData,
  type AlertRuleSchema,
  AlertSeverity as SeverityEnum,
  AlertState,
  type FiringAlertSchema,
} from "@holdfast/proto/holdfast/v1/alert_pb.ts";
import type { AlertRuleState } from "./alert-rule-lifecycle.ts";
import type { AlertCondition, AlertRuleObject, AlertRuleSpec, AlertSeverity, FiredAlert } from "./alert-rule.ts";
import type { RuleEvaluation } from "./evaluate-rule.ts";

const states = {
  ok: AlertState.OK,
  pending: AlertState.PENDING,
  firing: AlertState.FIRING,
  no_data: AlertState.NO_DATA,
  paused: AlertState.PAUSED,
} as const satisfies Record<AlertRuleState, AlertState>;

/** The API message of a rule: its stored fields, and its state according to the newest samples. */
export function alertRuleMessage(
  { metadata, spec, status: { fired } }: AlertRuleObject,
  evaluation: RuleEvaluation | undefined,
): Omit<MessageInitShape<typeof AlertRuleSchema>, "$typeName"> {
  // The state is FIRING only once it is stored with its event.
  const state = spec.paused
    ? "paused"
    : (fired?.state ?? (evaluation === undefined || evaluation.state === "ok" ? "ok" : "pending"));
  const since = state === "paused" ? undefined : (fired?.since ?? evaluation?.sinceMs);
  const value = evaluation?.value ?? fired?.value ?? undefined;
  const nodeId = evaluation?.nodeId ?? fired?.nodeId ?? undefined;
  return {
    id: metadata.id,
    serviceId: spec.serviceId,
    name: metadata.name,
    metric: spec.metric,
    condition: conditionEnum(spec.condition),
    threshold: spec.threshold,
    severity: severityEnum(spec.severity),
    durationMinutes: spec.durationMinutes,
    ...(spec.channelId !== null && { notificationChannelId: spec.channelId }),
    noData: noDataEnum(spec.noData),
    paused: spec.paused,
    state: states[state],
    ...(since !== undefined && { since: timestampFromMs(since) }),
    ...(value !== undefined && { value }),
    ...(nodeId !== undefined && { nodeId }),
    createdAt: timestampFromMs(metadata.createdAt),
    updatedAt: timestampFromMs(metadata.updatedAt),
  };
}

/** The API message of an alert that fires. */
export function firingAlertMessage(
  { metadata, spec }: AlertRuleObject,
  fired: FiredAlert,
): MessageInitShape<typeof FiringAlertSchema> {
  return {
    id: fired.id,
    ruleId: metadata.id,
    alertName: metadata.name,
    serviceId: spec.serviceId,
    serviceName: fired.serviceName,
    ...(fired.nodeId !== null && { nodeId: fired.nodeId }),
    metric: spec.metric,
    condition: conditionEnum(spec.condition),
    threshold: spec.threshold,
    ...(fired.value !== null && { currentValue: fired.value }),
    severity: severityEnum(spec.severity),
    state: states[fired.state],
    since: timestampFromMs(fired.since),
    firedAt: timestampFromMs(fired.firedAt),
  };
}

// Tables from stored names to values of the protos' enumerations.

const conditions = { gt: ConditionEnum.GT, lt: ConditionEnum.LT } as const satisfies Record<
  AlertCondition,
  ConditionEnum
>;
const severities = {
  info: SeverityEnum.INFO,
  warning: SeverityEnum.WARNING,
  critical: SeverityEnum.CRITICAL,
} as const satisfies Record<AlertSeverity, SeverityEnum>;
const noDataValues = { ignore: AlertNoData.IGNORE, fire: AlertNoData.FIRE } as const satisfies Record<
  AlertRuleSpec["noData"],
  AlertNoData
>;

const conditionEnum = (name: AlertCondition) => conditions[name];
const severityEnum = (name: AlertSeverity) => severities[name];
const noDataEnum = (name: AlertRuleSpec["noData"]) => noDataValues[name];

/** The stored name of a request's condition. Validation has refused UNSPECIFIED before. */
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
