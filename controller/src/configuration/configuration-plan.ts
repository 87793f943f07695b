import { type FieldFault, HoldfastError, pointerOf } from "@holdfast/common/errors.ts";
import type { Value } from "@bufbuild/protobuf/wkt";
import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { type CatalogData, planOf } from "../catalog/catalog.ts";
import type { EngineOffer } from "../catalog/engine-offer.ts";
import type { ManagedServiceSpec } from "../managed-service/managed-service.ts";

const gib = 1024 ** 3;

export type ParameterStatusName = "applied" | "pending_restart" | "rejected";

export interface ShownParameter {
  readonly value: string;
  readonly default: string;
  readonly status: ParameterStatusName;
  readonly reason: string | undefined;
}

/** Pure: the parameters after a change, or INVALID_REQUEST naming each bad value; then nothing is changed. */
export function changedParameters(
  spec: ManagedServiceSpec,
  change: Readonly<Record<string, Value>>,
  engine: EngineOffer,
): Readonly<Record<string, string>> {
  const parameters = { ...spec.parameters };
  const faults: FieldFault[] = [];
  for (const [name, { kind }] of Object.entries(change)) {
    const fault = (code: string, detail: string) =>
      faults.push({ field: `parameters.${name}`, pointer: pointerOf(`parameters.${name}`), code, detail });
    if (kind.case === "stringValue") {
      const checked = engine.checkParameter(spec.version, name, kind.value);
      if (checked.ok) parameters[name] = checked.value;
      else fault(checked.code, checked.detail);
    } else if (kind.case === "nullValue") {
      const known = engine.parameters(spec.version).some((parameter) => parameter.name === name);
      if (known) delete parameters[name];
      else fault("unknown_parameter", "is no parameter of this engine version");
    } else {
      fault("wrong_type", "must be a text or null");
    }
  }
  if (faults.length === 0) return parameters;
  throw new HoldfastError("INVALID_REQUEST", faults.map(({ field, detail }) => `${field} ${detail}`).join("; "), {
    errors: faults,
  });
}

/** Pure: every parameter with its value and whether the engine runs with it. */
export function shownParameters(args: {
  spec: ManagedServiceSpec;
  engine: EngineOffer;
  catalog: CatalogData;
  instance: InstanceObservation | undefined;
}): Record<string, ShownParameter> {
  const { spec, engine, catalog, instance } = args;
  const plan = planOf(catalog, spec.planName);
  const { vcpu, memoryGb } = plan;
  const byPlan = engine.planDefaults({ vcpu, memoryBytes: memoryGb * gib, storageBytes: spec.storageSizeGb * gib });
  const shown: Record<string, ShownParameter> = {};
  for (const parameter of engine.parameters(spec.version)) {
    const { name } = parameter;
    const standard = byPlan[name] ?? parameter.default ?? "";
    const rejected = instance?.rejectedParameters[name];
    // Settings that the engine has not been told yet take effect when it starts.
    const behind =
      spec.power === "off" || instance === undefined || Number(instance.generation) < spec.instanceGeneration;
    const waits =
      instance?.pendingRestart.includes(name) === true || (behind && parameter.needsRestart && name in spec.parameters);
    shown[name] = {
      value: spec.parameters[name] ?? standard,
      default: standard,
      status: rejected !== undefined ? "rejected" : waits ? "pending_restart" : "applied",
      reason: rejected,
    };
  }
  return shown;
}
