import type { FieldFault } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { PlanSize } from "@holdfast/common/engine-catalog/engine-row.ts";
import { parametersOf, planParameters } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { EngineOffer } from "#catalog/engine-offer.ts";
import { planFaults } from "#catalog/parameter-choice.ts";
import { engineProfileOf } from "../engine/engine-profiles.ts";
import type { ManagedServiceSpec } from "../service/managed-service.ts";

type Parameters = Readonly<Record<string, string>>;

/**
 * Minimum values of parameters with which replicas start until they have replayed a lower value of the primary
 * (PostgreSQL manual, "Hot Standby", Administrator's Overview).
 */
export function replicaMinimums(spec: ManagedServiceSpec, primary: InstanceObservation | undefined): Parameters {
  return spec.nodes.length > 1 ? logSettings(spec, primary) : {};
}

/** Settings under which the primary writes its log, for which a replay needs at least the same values. */
export function logSettings(spec: ManagedServiceSpec, primary: InstanceObservation | undefined): Parameters {
  const names = engineProfileOf(spec.databaseType).replicas?.minimumFromPrimary ?? [];
  const running = names.flatMap((name) => {
    const value = primary === undefined ? undefined : lookUp(primary.effectiveParameters, name);
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(running);
}

/**
 * An error for each named parameter that exceeds the plan, alone or together with the minimums of replicas, because a
 * replica starts with both.
 */
export function capacityFaults(
  engine: EngineOffer,
  version: string,
  plan: PlanSize,
  {
    parameters,
    names,
    minimums,
  }: { readonly parameters: Parameters; readonly names: readonly string[]; readonly minimums: Parameters },
): readonly FieldFault[] {
  const raised = Object.entries(raisedMinimums({ engine: engine.databaseType, version, plan, parameters }, minimums));
  return names.flatMap((name) => {
    const others = raised.filter(([other]) => other !== name);
    const [alone] = planFaults(engine, version, plan, parameters, [name]);
    const beside = planFaults(engine, version, plan, { ...parameters, ...Object.fromEntries(others) }, [name]);
    const settings = others.map(([other, value]) => `${other} = ${value}`).join(", ");
    return beside.map((fault) =>
      fault.detail === alone?.detail
        ? fault
        : { ...fault, detail: `${fault.detail} while its replicas need ${settings}. Restart the service first.` },
    );
  });
}

/** The minimums that are higher than the value by the parameters, the plan or the default. */
export function raisedMinimums(
  {
    engine,
    version,
    plan,
    parameters,
  }: {
    readonly engine: string;
    readonly version: string;
    readonly plan: PlanSize;
    readonly parameters: Parameters;
  },
  minimums: Parameters,
): Parameters {
  const catalog = parametersOf(engine, version);
  const byPlan = planParameters(engine, plan);
  const chosen = (name: string) => lookUp(parameters, name) ?? lookUp(byPlan, name) ?? catalog.get(name)?.default;
  return Object.fromEntries(Object.entries(minimums).filter(([name, value]) => Number(chosen(name)) < Number(value)));
}
