import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type AlertRuleSchema, AlertState, type FiringAlertSchema } from "@holdfast/proto/holdfast/v1/alert_pb.ts";
import type { AlertRuleObject, FiredAlert } from "./alert-rule.ts";
import type { AlertRuleState } from "./alert-rule-lifecycle.ts";
import { conditionEnum, noDataEnum, severityEnum } from "./alert-words.ts";
import type { RuleEvaluation } from "./evaluate-rule.ts";

const states = {
  ok: AlertState.OK,
  pending: AlertState.PENDING,
  firing: AlertState.FIRING,
  no_data: AlertState.NO_DATA,
  paused: AlertState.PAUSED,
} as const satisfies Record<AlertRuleState, AlertState>;

/** A rule as the API shows it: what is stored of it, and what its samples say. */
export function alertRuleMessage(
  { metadata, spec, status: { fired } }: AlertRuleObject,
  seen: RuleEvaluation | undefined,
): Omit<MessageInitShape<typeof AlertRuleSchema>, "$typeName"> {
  // It fires once that is stored with its event, and not before.
  const state = spec.paused
    ? "paused"
    : (fired?.state ?? (seen === undefined || seen.state === "ok" ? "ok" : "pending"));
  const since = state === "paused" ? undefined : (fired?.since ?? seen?.sinceMs);
  const value = seen?.value ?? fired?.value ?? undefined;
  const nodeId = seen?.nodeId ?? fired?.nodeId ?? undefined;
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

/** An alert that fires, as the API shows it. */
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
