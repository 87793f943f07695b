import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import { type AlertRuleObject, type FiredAlert, ownerKindOf, type ResolvedReason } from "./alert-rule.ts";

/** The event `alert.fired` of a rule. */
export function firedEvent(rule: AlertRuleObject, fired: FiredAlert): NewEvent {
  return eventOf("alert.fired", rule, fired, { current_value: fired.value, state: fired.state, resolved_at: null });
}

/** The event `alert.resolved` of a rule. `value`: the sample that resolved it; null if no sample did. */
export function resolvedEvent(
  rule: AlertRuleObject,
  fired: FiredAlert,
  { reason, at, value }: { readonly reason: ResolvedReason; readonly at: number; readonly value: number | null },
): NewEvent {
  const more = { current_value: value, state: "resolved", resolved_at: textOf(at), reason };
  return eventOf("alert.resolved", rule, fired, more);
}

function eventOf(
  type: "alert.fired" | "alert.resolved",
  { metadata, spec }: AlertRuleObject,
  fired: FiredAlert,
  more: Readonly<Record<string, unknown>>,
): NewEvent {
  return {
    type,
    organizationId: metadata.organizationId,
    objectKind: ownerKindOf(spec),
    objectId: spec.serviceId,
    data: {
      id: fired.id,
      rule_id: metadata.id,
      alert_name: metadata.name,
      service_id: spec.serviceId,
      service_name: fired.serviceName,
      node_id: fired.nodeId,
      metric: spec.metric,
      condition: spec.condition,
      threshold: spec.threshold,
      severity: spec.severity,
      since: textOf(fired.since),
      fired_at: textOf(fired.firedAt),
      notification_channel_id: fired.channelId,
      ...more,
    },
  };
}

function textOf(time: number): string {
  return new Date(time).toISOString();
}
