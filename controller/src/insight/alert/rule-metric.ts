import { nearName } from "@holdfast/common/engine-catalog/near-name.ts";
import { type FieldFault, HoldfastError } from "@holdfast/common/errors.ts";
import { isOfEngine, metricCatalog, metricOf } from "@holdfast/common/metric-catalog.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";

/** What stands against a name that is no metric's. */
export function faultsOfMetric(name: string): readonly FieldFault[] {
  if (name === "" || metricOf(name) !== undefined) return [];
  const near = nearName(
    name,
    metricCatalog.map((metric) => metric.name),
  );
  const hint = near === undefined ? "GET /catalog lists those there are" : `did you mean ${near}?`;
  return [{ field: "metric", pointer: "/metric", code: "unknown_metric", detail: `${name} is no metric: ${hint}` }];
}

/** Throws NOT_SUPPORTED for one of other engines. */
export function requireMetric(name: string, { spec }: ManagedServiceObject): void {
  const metric = metricOf(name);
  if (metric === undefined || isOfEngine(metric, spec.databaseType)) return;
  const detail = `${name} is a metric of ${metric.engines.join(", ")}; this service is ${spec.databaseType}.`;
  throw new HoldfastError("NOT_SUPPORTED", detail);
}
