import type { FieldFault } from "@holdfast/common/errors.ts";
import { withinLimits } from "@holdfast/common/engine-catalog/parameter.ts";
import type { Value } from "@bufbuild/protobuf/wkt";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { type CatalogData, planSizeOf } from "#catalog/catalog.ts";
import type { EngineOffer } from "#catalog/engine-offer.ts";
import { type CheckedParameters, checkedParameters, parameterFault } from "#catalog/parameter-choice.ts";
import type { ManagedServiceSpec } from "../service/managed-service.ts";
import { neededByReplicas, roomFaults } from "./needed-parameters.ts";

export type ParameterStatusName = "applied" | "pending_restart" | "rejected";

export interface ShownParameter {
  readonly value: string;
  readonly default: string;
  readonly status: ParameterStatusName;
  readonly reason: string | undefined;
}

export interface ChangeWorld {
  readonly engine: EngineOffer;
  readonly catalog: CatalogData;
  readonly primary: InstanceObservation | undefined;
}

/**
 * Pure: the parameters after a change, and each of its values that is wrong; with one of these nothing may be changed. `primary` is what
 * was observed last of the primary's engine.
 */
export function changedParameters(
  spec: ManagedServiceSpec,
  change: Readonly<Record<string, Value>>,
  { engine, catalog, primary }: ChangeWorld,
): CheckedParameters {
  const set: Record<string, string> = {};
  const kept = { ...spec.parameters };
  const faults: FieldFault[] = [];
  for (const [name, { kind }] of Object.entries(change)) {
    if (kind.case === "stringValue") set[name] = kind.value;
    else if (kind.case !== "nullValue") faults.push(parameterFault(name, "wrong_type", "must be a text or null"));
    else if (engine.parameters(spec.version).some((parameter) => parameter.name === name)) delete kept[name];
    else faults.push(parameterFault(name, "unknown_parameter", "is no parameter of this engine version"));
  }
  const checked = checkedParameters(engine, spec.version, set);
  const parameters = { ...kept, ...checked.parameters };
  const plan = planSizeOf(catalog, spec.planName, spec.storageSizeGb);
  const names = Object.keys(checked.parameters);
  const needed = neededByReplicas(spec, primary);
  const excesses = plan ? roomFaults(engine, spec.version, plan, { parameters, names, needed }) : [];
  return { parameters, faults: [...faults, ...checked.faults, ...excesses] };
}

/** Pure: every parameter with its value and whether the engine runs with it. */
export function shownParameters(args: {
  spec: ManagedServiceSpec;
  engine: EngineOffer;
  catalog: CatalogData;
  instance: InstanceObservation | undefined;
}): Record<string, ShownParameter> {
  const { spec, engine, catalog, instance } = args;
  const plan = planSizeOf(catalog, spec.planName, spec.storageSizeGb);
  const byPlan = plan === undefined ? {} : engine.planDefaults(plan);
  const shown: Record<string, ShownParameter> = {};
  for (const parameter of engine.parameters(spec.version)) {
    const { name } = parameter;
    const standard = byPlan[name] ?? parameter.default ?? "";
    const rejected = lookUp(instance?.rejectedParameters ?? {}, name);
    // Settings that the engine has not been told yet take effect when it starts.
    const behind =
      spec.power === "off" || instance === undefined || Number(instance.generation) < spec.instanceGeneration;
    const waits =
      instance?.pendingRestart.includes(name) === true || (behind && parameter.needsRestart && name in spec.parameters);
    shown[name] = {
      value: withinLimits(parameter, lookUp(spec.parameters, name) ?? standard),
      default: standard,
      status: rejected !== undefined ? "rejected" : waits ? "pending_restart" : "applied",
      reason: rejected,
    };
  }
  return shown;
}
