import { metricOf } from "@holdfast/common/metric-catalog.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import type { AlertRuleObject } from "./alert-rule.ts";
import type { RuleTerms } from "./evaluate-rule.ts";

const minuteMs = 60_000;
/** A run of true samples begins a little before its duration, as samples are not at round times. */
const marginMs = 5 * minuteMs;

/** What a rule asks of its service. Samples from before the service's last start do not count. */
export function termsOf({ spec }: AlertRuleObject, service: ManagedServiceObject): RuleTerms {
  return {
    condition: spec.condition,
    threshold: spec.threshold,
    durationMs: spec.durationMinutes * minuteMs,
    noData: spec.noData,
    sinceMs: Math.max(spec.since, service.spec.poweredOnAt ?? 0),
  };
}

/** How far back the samples reach that decide. */
export function lookBackMs({ spec }: AlertRuleObject): number {
  return spec.durationMinutes * minuteMs + marginMs;
}

/** Place of the rule's metric in samples; undefined for one that this version does not know. */
export function slotOf({ spec }: AlertRuleObject): number | undefined {
  return metricOf(spec.metric)?.slot;
}
