import { engineOf, parametersOf, planParameters } from "./engine-catalog.ts";
import type { PlanMaximum, PlanSize } from "./engine-row.ts";
import type { Parameter } from "./parameter.ts";
import { parseQuantity, printQuantity } from "./quantity.ts";
import { lookUp } from "../look-up.ts";

/** A parameter value that exceeds the resources of a plan. */
export interface PlanExcess {
  readonly name: string;
  /** Maximum for the plan, as the engine prints it; undefined if even the smallest value is too large. */
  readonly maximum: string | undefined;
  /** The resource that is too small. */
  readonly of: PlanMaximum["of"];
}

const mib = 1024 ** 2;
const kib = 1024;

/**
 * Named parameters that exceed the plan, given all parameters of the instance in canonical form. Other parameters were
 * accepted earlier and are not checked.
 */
export function planExcesses(
  engine: string,
  version: string,
  plan: PlanSize,
  parameters: Readonly<Record<string, string>>,
  names: readonly string[],
): readonly PlanExcess[] {
  const { maximumOf } = engineOf(engine)?.sizing ?? {};
  if (maximumOf === undefined) return [];
  const catalog = parametersOf(engine, version);
  const byPlan = planParameters(engine, plan);
  const values = valuesOf(engine, version, plan, parameters);
  return names.flatMap((name) => {
    const parameter = catalog.get(name);
    const standard = parameter && (lookUp(byPlan, name) ?? parameter.default);
    if (parameter === undefined || !Object.hasOwn(parameters, name)) return [];
    const maximum = maximumOf(name, values, plan);
    // The plan's own default is always accepted.
    const limit = Math.max(
      maximum?.value ?? Number.POSITIVE_INFINITY,
      standard == null ? 0 : bytesOf(parameter, standard),
    );
    if (maximum === undefined || (values.get(name) ?? 0) <= limit) return [];
    return [{ name, maximum: printed(parameter, limit), of: maximum.of }];
  });
}

/** True if an engine of this plan can replay log that was written under these settings. */
export function canReplay(
  engine: string,
  version: string,
  plan: PlanSize,
  settings: Readonly<Record<string, string>>,
): boolean {
  return engineOf(engine)?.sizing.canReplay?.(valuesOf(engine, version, plan, settings), plan) ?? true;
}

/** A message for the user who set the parameter. */
export function excessMessage({ name, maximum, of }: PlanExcess): string {
  const limit = maximum === undefined ? "no value of it fits beside the other parameters" : `it is ${maximum} at most`;
  return `this plan has too little ${of} for ${name}: ${limit}`;
}

/** Values of all parameters of the catalog, sizes in bytes. */
function valuesOf(
  engine: string,
  version: string,
  plan: PlanSize,
  parameters: Readonly<Record<string, string>>,
): ReadonlyMap<string, number> {
  const byPlan = planParameters(engine, plan);
  const values = new Map<string, number>();
  for (const [name, parameter] of parametersOf(engine, version)) {
    const text = lookUp(parameters, name) ?? lookUp(byPlan, name) ?? parameter.default;
    if (text !== null) values.set(name, bytesOf(parameter, text));
  }
  return values;
}

function bytesOf(parameter: Parameter, text: string): number {
  const number = parameter.unit === null ? Number(text) : (parseQuantity(text, parameter.unit) ?? 0);
  return number * bytesIn(parameter);
}

function bytesIn({ type, unit }: Parameter): number {
  if (type !== "bytes" || unit === null) return 1;
  return { byte: 1, B: 1, kB: kib, "8kB": 8 * kib, MB: mib, ms: 1, s: 1, min: 1 }[unit];
}

function printed(parameter: Parameter, value: number): string | undefined {
  const number = Math.floor(value / bytesIn(parameter));
  if (parameter.minimum !== null && number < parameter.minimum) return undefined;
  return parameter.unit === null ? String(number) : printQuantity(roundedDown(parameter, number), parameter.unit);
}

/** Rounds down to full MiB if the value is larger than that. */
function roundedDown(parameter: Parameter, number: number): number {
  const step = mib / bytesIn(parameter);
  return parameter.type === "bytes" && number > step ? Math.floor(number / step) * step : number;
}
