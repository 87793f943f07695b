import { invalid } from "@holdfast/common/errors.ts";
import type { UpdateAlertRuleRequest } from "@holdfast/proto/holdfast/v1/alert_pb.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import { type AlertRuleObject, type AlertRuleSpec, defaultNameOf, type ResolvedReason } from "./alert-rule.ts";
import { conditionOf, noDataOf, severityOf } from "./alert-message.ts";

/**
 * Applies the fields of the update mask. A change of the condition restarts the evaluation, and a current alert is
 * resolved with the returned reason. Throws INVALID_REQUEST.
 */
export function updateRule(
  rule: AlertRuleObject,
  request: UpdateAlertRuleRequest,
  now: number,
): { readonly rule: AlertRuleObject; readonly reason: ResolvedReason | undefined } {
  const paths = request.updateMask?.paths ?? [];
  if (paths.length === 0)
    throw invalid({ field: "update_mask", code: "required", detail: "must name at least one field" });
  let spec = rule.spec;
  for (const path of paths) spec = { ...spec, ...changeOf(path, request) };
  const { metadata } = rule;
  const hasDefaultName = metadata.name === defaultNameOf(rule.spec.metric, rule.spec.condition, rule.spec.threshold);
  const name =
    request.name ?? (hasDefaultName ? defaultNameOf(spec.metric, spec.condition, spec.threshold) : metadata.name);
  const paused = spec.paused && !rule.spec.paused;
  const changesCondition =
    conditionFields.some((field) => spec[field] !== rule.spec[field]) || spec.paused !== rule.spec.paused;
  return {
    rule: {
      metadata: { ...nextMetadata(metadata, now), name },
      spec: changesCondition ? { ...spec, since: now } : spec,
      status: changesCondition ? { ...rule.status, fired: null } : rule.status,
    },
    reason: changesCondition ? (paused ? "rule_paused" : "rule_changed") : undefined,
  };
}

/** The fields that decide a rule's state; name, severity and channel do not. */
const conditionFields = ["metric", "condition", "threshold", "durationMinutes", "noData"] as const;

function changeOf(path: string, request: UpdateAlertRuleRequest): Partial<AlertRuleSpec> {
  const required = <T>(value: T | undefined): T => {
    if (value !== undefined) return value;
    throw invalid({ field: path, code: "not_clearable", detail: "must not be null" });
  };
  switch (path) {
    case "name":
      required(request.name);
      return {};
    case "condition":
      return { condition: conditionOf(required(request.condition)) };
    case "threshold":
      return { threshold: required(request.threshold) };
    case "severity":
      return { severity: severityOf(required(request.severity)) };
    case "duration_minutes":
      return { durationMinutes: required(request.durationMinutes) };
    case "notification_channel_id":
      return { channelId: request.notificationChannelId ?? null };
    case "no_data":
      return { noData: noDataOf(required(request.noData)) };
    case "paused":
      return { paused: required(request.paused) };
    default:
      throw invalid({ field: "update_mask", code: "unknown_field", detail: `names ${path}, which cannot be changed` });
  }
}
