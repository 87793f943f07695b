import { isOfEngine, metricOf } from "@holdfast/common/metric-catalog.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import type { AlertRuleSpec } from "./alert-rule.ts";

type DefaultRule = Pick<
  AlertRuleSpec,
  "metric" | "condition" | "threshold" | "severity" | "durationMinutes" | "noData"
>;

/** What every service is watched for from the start. */
// biome-ignore format: a table, aligned so that it reads as one
const rules: readonly DefaultRule[] = [
  { metric: "disk",                    condition: "gt", threshold: 90,  severity: "warning",  durationMinutes: 5, noData: "ignore" },
  { metric: "health",                  condition: "gt", threshold: 1,   severity: "critical", durationMinutes: 2, noData: "fire" },
  { metric: "restorable_age_seconds",  condition: "gt", threshold: 900, severity: "critical", durationMinutes: 5, noData: "ignore" },
  { metric: "replication_lag_seconds", condition: "gt", threshold: 300, severity: "warning",  durationMinutes: 5, noData: "ignore" },
];

/** The default rules of a service: of metrics that this version collects of it. A lag is only where there are replicas. */
export function defaultRulesOf({ spec }: Pick<ManagedServiceObject, "spec">): readonly DefaultRule[] {
  return rules.filter(({ metric }) => {
    const known = metricOf(metric);
    if (metric === "replication_lag_seconds" && spec.nodes.length < 2) return false;
    return known !== undefined && known.source !== null && isOfEngine(known, spec.databaseType);
  });
}
