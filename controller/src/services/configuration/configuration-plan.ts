import type { FieldFault } from "@holdfast/common/errors.ts";
import { withinLimits } from "@holdfast/common/engine-catalog/parameter.ts";
import type { Value } from "@bufbuild/protobuf/wkt";
import { engineOf, topologyOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { type CatalogData, planSizeOf } from "#catalog/catalog.ts";
import type { EngineOffer } from "#catalog/engine-offer.ts";
import { type CheckedParameters, checkedParameters, parameterFault } from "#catalog/parameter-choice.ts";
import type { ManagedServiceSpec } from "../service/managed-service.ts";
import { nodeBoundFaults } from "./node-bounds.ts";
import { replicaMinimums, capacityFaults } from "./replica-minimums.ts";

export type ParameterStatusName = "applied" | "pending" | "pending_restart" | "rejected";

export interface ParameterView {
  readonly value: string;
  readonly default: string;
  readonly status: ParameterStatusName;
  readonly reason: string | undefined;
  readonly warning: string | undefined;
}

export interface ChangeContext {
  readonly engine: EngineOffer;
  readonly catalog: CatalogData;
  readonly primary: InstanceObservation | undefined;
}

/**
 * The parameters after a change, and an error for each invalid value. With an error nothing is changed. `primary`: the
 * last observation of the primary's engine.
 */
export function changedParameters(
  spec: ManagedServiceSpec,
  change: Readonly<Record<string, Value>>,
  { engine, catalog, primary }: ChangeContext,
): CheckedParameters {
  const set: Record<string, string> = {};
  const unchanged = { ...spec.parameters };
  const faults: FieldFault[] = [];
  const isOffered = (name: string) => engine.parameters(spec.version).some((parameter) => parameter.name === name);
  for (const [name, { kind }] of Object.entries(change)) {
    if (kind.case === "stringValue") set[name] = kind.value;
    else if (kind.case !== "nullValue") faults.push(parameterFault(name, "wrong_type", "must be a string or null"));
    else if (Object.hasOwn(unchanged, name) || isOffered(name)) delete unchanged[name];
    else faults.push(parameterFault(name, "unknown_parameter", "is not a parameter of this engine version"));
  }
  const checked = checkedParameters(engine, spec.version, set);
  const parameters = { ...unchanged, ...checked.parameters };
  const plan = planSizeOf(catalog, spec.planName, spec.storageSizeGb);
  const names = Object.keys(checked.parameters);
  const minimums = replicaMinimums(spec, primary);
  const excesses = plan ? capacityFaults(engine, spec.version, plan, { parameters, names, minimums }) : [];
  const bounds = nodeBoundFaults(spec.databaseType, checked.parameters, spec.nodes.length);
  return { parameters, faults: [...faults, ...checked.faults, ...excesses, ...bounds] };
}

/**
 * Every parameter with its value, default and status. `primary`: the last observation of the primary's engine, or of
 * one of the peers. `instances`: the last observations of all nodes.
 */
export function parameterViews(args: {
  spec: ManagedServiceSpec;
  engine: EngineOffer;
  catalog: CatalogData;
  primary: InstanceObservation | undefined;
  instances: readonly InstanceObservation[];
}): Record<string, ParameterView> {
  const { spec, engine, catalog, primary, instances } = args;
  const plan = planSizeOf(catalog, spec.planName, spec.storageSizeGb);
  const computed = plan === undefined ? {} : engine.computedDefaults(plan, spec.nodes.length);
  const isLate = ({ generation }: InstanceObservation) => Number(generation) < spec.instanceGeneration;
  // Parameters that were not delivered yet take effect at the engine's next start.
  const isUndelivered = spec.power === "off" || primary === undefined || isLate(primary);
  const restarting = topologyOf(spec.databaseType) === "peers" ? instances : [primary];
  const byNodes = new Set(Object.keys(engineOf(spec.databaseType)?.nodeDefaults?.(spec.nodes.length) ?? {}));
  const views: Record<string, ParameterView> = {};
  for (const parameter of engine.parameters(spec.version)) {
    const { name, needsRestart } = parameter;
    const chosen = lookUp(spec.parameters, name);
    const defaultValue = lookUp(computed, name) ?? parameter.default ?? "";
    const value = withinLimits(parameter, chosen ?? defaultValue);
    const rejected = lookUp(primary?.rejectedParameters ?? {}, name);
    const awaitsRestart =
      restarting.some((instance) => instance?.pendingRestart.includes(name) === true) ||
      (isUndelivered && needsRestart && chosen !== undefined);
    // A default by the number of nodes follows the nodes once they are complete.
    const mayDiffer = (instance: InstanceObservation) =>
      isLate(instance) || (chosen === undefined && byNodes.has(name));
    const isAwaited =
      spec.power === "on" &&
      !needsRestart &&
      instances.some((each) => mayDiffer(each) && !hasValue(lookUp(each.effectiveParameters, name), value));
    views[name] = {
      value,
      default: defaultValue,
      status: statusOf({ isRejected: rejected !== undefined, awaitsRestart, isAwaited }),
      reason: rejected,
      warning: engine.parameterWarning(name, value, spec.nodes.length),
    };
  }
  return views;
}

function statusOf(found: { isRejected: boolean; awaitsRestart: boolean; isAwaited: boolean }): ParameterStatusName {
  if (found.isRejected) return "rejected";
  if (found.awaitsRestart) return "pending_restart";
  return found.isAwaited ? "pending" : "applied";
}

/** True if an engine that reports this value runs with it. Some print numbers otherwise: 0 as 0.0. */
function hasValue(reported: string | undefined, value: string): boolean {
  if (reported === undefined || reported === value) return true;
  return reported !== "" && value !== "" && Number(reported) === Number(value);
}
