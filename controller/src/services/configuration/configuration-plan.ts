import type { FieldFault } from "@holdfast/common/errors.ts";
import { withinLimits } from "@holdfast/common/engine-catalog/parameter.ts";
import type { Value } from "@bufbuild/protobuf/wkt";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { type CatalogData, planSizeOf } from "#catalog/catalog.ts";
import type { EngineOffer } from "#catalog/engine-offer.ts";
import { type CheckedParameters, checkedParameters, parameterFault } from "#catalog/parameter-choice.ts";
import type { ManagedServiceSpec } from "../service/managed-service.ts";
import { nodeBoundFaults } from "./node-bounds.ts";
import { replicaMinimums, capacityFaults } from "./replica-minimums.ts";

export type ParameterStatusName = "applied" | "pending_restart" | "rejected";

export interface ParameterView {
  readonly value: string;
  readonly default: string;
  readonly status: ParameterStatusName;
  readonly reason: string | undefined;
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

/** Every parameter with its value, default and status. */
export function parameterViews(args: {
  spec: ManagedServiceSpec;
  engine: EngineOffer;
  catalog: CatalogData;
  instance: InstanceObservation | undefined;
}): Record<string, ParameterView> {
  const { spec, engine, catalog, instance } = args;
  const plan = planSizeOf(catalog, spec.planName, spec.storageSizeGb);
  const byPlan = plan === undefined ? {} : engine.planDefaults(plan);
  const views: Record<string, ParameterView> = {};
  for (const parameter of engine.parameters(spec.version)) {
    const { name } = parameter;
    const defaultValue = lookUp(byPlan, name) ?? parameter.default ?? "";
    const rejected = lookUp(instance?.rejectedParameters ?? {}, name);
    // Parameters that were not delivered yet take effect at the engine's next start.
    const isPending =
      spec.power === "off" || instance === undefined || Number(instance.generation) < spec.instanceGeneration;
    const awaitsRestart =
      instance?.pendingRestart.includes(name) === true ||
      (isPending && parameter.needsRestart && Object.hasOwn(spec.parameters, name));
    views[name] = {
      value: withinLimits(parameter, lookUp(spec.parameters, name) ?? defaultValue),
      default: defaultValue,
      status: rejected !== undefined ? "rejected" : awaitsRestart ? "pending_restart" : "applied",
      reason: rejected,
    };
  }
  return views;
}
