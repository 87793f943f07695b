import type { EventDefinition } from "#kernel/outbox/event-definition.ts";
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

const alertData = {
  id: { type: "uuid", meaning: "id of the alert, the same when it is resolved" },
  rule_id: { type: "uuid", meaning: "the rule" },
  alert_name: { type: "string", meaning: "the rule's name" },
  service_id: { type: "uuid", meaning: "the service" },
  service_name: { type: "string", meaning: "name of the service at the event" },
  node_id: { type: "uuid", meaning: "the node whose value decides", nullable: true },
  metric: { type: "string", meaning: "the metric that the rule evaluates" },
  condition: { type: "string", meaning: "`gt` (above) or `lt` (below)" },
  threshold: { type: "number", meaning: "the rule's threshold" },
  current_value: { type: "number", meaning: "the value that caused the change; null without data", nullable: true },
  severity: { type: "string", meaning: "`info`, `warning` or `critical`" },
  state: { type: "string", meaning: "`firing`, `no_data` or `resolved`" },
  since: { type: "time", meaning: "start of the time for which the condition held, or data were missing" },
  fired_at: { type: "time", meaning: "time at which the alert fired" },
  notification_channel_id: { type: "uuid", meaning: "the channel that gets the alert", nullable: true },
} as const satisfies EventDefinition["data"];

const alertExample = {
  id: "0198f2a4-a1c0-7d3e-8b52-4c9f0e7a6d18",
  rule_id: "0198f2a4-a0b7-7a6c-93f4-5d8e1b2c7f09",
  alert_name: "disk nearly full",
  service_id: "0198f2a4-6f0e-7c41-9a55-1d2b0c9e7f10",
  service_name: "orders",
  node_id: "0198f2a4-6f12-7e83-b6c4-9a0d3f5b2e71",
  metric: "disk",
  condition: "gt",
  threshold: 90,
  severity: "warning",
  since: "2026-11-21T09:35:00.000Z",
  fired_at: "2026-11-21T09:40:00.000Z",
  notification_channel_id: "0198f2a4-9f4d-7b28-a3e6-7c1d0b5f8a92",
};

/** The event types of alerts: a rule fires, and its alert is resolved. */
export const alertEventDefinitions = {
  "alert.fired": {
    when: "the condition of an alert rule has held for its duration, or data are missing and the rule has `no_data: fire`",
    data: {
      ...alertData,
      resolved_at: {
        type: "time",
        meaning: "null, so that both messages of a channel have the same members",
        nullable: true,
      },
    },
    example: { ...alertExample, current_value: 93.2, state: "firing", resolved_at: null },
  },
  "alert.resolved": {
    when: "an alert that fired is resolved",
    data: {
      ...alertData,
      resolved_at: { type: "time", meaning: "time at which the alert was resolved" },
      reason: {
        type: "string",
        meaning:
          "`condition_false`, `rule_changed`, `rule_paused`, `rule_deleted`, `service_stopped` or `service_deleted`",
      },
    },
    example: {
      ...alertExample,
      current_value: 71.4,
      state: "resolved",
      resolved_at: "2026-11-21T10:00:00.000Z",
      reason: "condition_false",
    },
  },
} as const satisfies Readonly<Record<string, EventDefinition>>;
