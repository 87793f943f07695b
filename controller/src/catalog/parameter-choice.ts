import { excessMessage } from "@holdfast/common/engine-catalog/plan-limits.ts";
import type { PlanSize } from "@holdfast/common/engine-catalog/engine-row.ts";
import type { FieldFault } from "@holdfast/common/errors.ts";
import type { EngineOffer } from "./engine-offer.ts";

/** Parameters in canonical format, and an error for each that this version of the engine refuses. */
export interface CheckedParameters {
  readonly parameters: Readonly<Record<string, string>>;
  readonly faults: readonly FieldFault[];
}

/** Checks each parameter against the engine's version. */
export function checkedParameters(
  engine: EngineOffer,
  version: string,
  requested: Readonly<Record<string, string>>,
): CheckedParameters {
  const parameters: Record<string, string> = {};
  const faults: FieldFault[] = [];
  for (const [name, text] of Object.entries(requested)) {
    const checked = engine.checkParameter(version, name, text);
    if (checked.ok) parameters[name] = checked.value;
    else faults.push(parameterFault(name, checked.code, checked.detail));
  }
  return { parameters, faults };
}

/** An error for each of the named parameters that exceeds the plan. */
export function planFaults(
  engine: EngineOffer,
  version: string,
  plan: PlanSize,
  parameters: Readonly<Record<string, string>>,
  names: readonly string[],
): readonly FieldFault[] {
  return engine
    .planExcesses(version, plan, parameters, names)
    .map((excess) => parameterFault(excess.name, "exceeds_plan", excessMessage(excess)));
}

/** The parameters that this version and plan support. The others are dropped and get their default. */
export function runnableParameters(
  engine: EngineOffer,
  version: string,
  plan: PlanSize,
  all: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const { parameters } = checkedParameters(engine, version, all);
  const excesses = new Set(
    engine.planExcesses(version, plan, parameters, Object.keys(parameters)).map(({ name }) => name),
  );
  return Object.fromEntries(Object.entries(parameters).filter(([name]) => !excesses.has(name)));
}

/** An error of one parameter. Dots in its name are not path separators. */
export function parameterFault(name: string, code: string, detail: string): FieldFault {
  const field = /^[\w-]+$/.test(name) ? `parameters.${name}` : `parameters[${JSON.stringify(name)}]`;
  return { field, pointer: `/parameters/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`, code, detail };
}
