import { computedDefaults, parametersOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { withinLimits } from "@holdfast/common/engine-catalog/parameter.ts";
import type { PlanSize } from "@holdfast/common/engine-catalog/engine-row.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { Instance } from "./engine-driver.ts";
import { membersOf } from "./members.ts";

/**
 * Every parameter of the catalog with the value that this instance runs with: the user's, the default of
 * its plan and number of nodes, or the default.
 */
export function effectiveParameters({ spec, minimumParameters = {} }: Omit<Instance, "paths">): Map<string, string> {
  const defaults = computedDefaults(spec.engine, planOf(spec), Math.max(membersOf(spec).length, 1));
  const values = new Map<string, string>();
  for (const [name, parameter] of parametersOf(spec.engine, spec.version)) {
    const value = lookUp(spec.parameters, name) ?? lookUp(defaults, name) ?? parameter.default;
    if (value !== null) values.set(name, withinLimits(parameter, value));
  }
  for (const [name, least] of Object.entries(minimumParameters)) {
    if (Number(values.get(name)) < least) values.set(name, String(least));
  }
  return values;
}

/** Size of the plan that the machine was created for. */
export function planOf({ vcpu, memoryBytes, storageBytes }: Instance["spec"]): PlanSize {
  return { vcpu, memoryBytes: Number(memoryBytes), storageBytes: Number(storageBytes) };
}
