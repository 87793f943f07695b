import type { FieldFault } from "@holdfast/common/errors.ts";
import type { EngineOffer } from "./engine-offer.ts";

/** Parameters in their canonical form, and a fault for each that this version of the engine does not take so. */
export interface CheckedParameters {
  readonly parameters: Readonly<Record<string, string>>;
  readonly faults: readonly FieldFault[];
}

/** Pure. */
export function checkedParameters(
  engine: EngineOffer,
  version: string,
  asked: Readonly<Record<string, string>>,
): CheckedParameters {
  const parameters: Record<string, string> = {};
  const faults: FieldFault[] = [];
  for (const [name, text] of Object.entries(asked)) {
    const checked = engine.checkParameter(version, name, text);
    if (checked.ok) parameters[name] = checked.value;
    else faults.push(parameterFault(name, checked.code, checked.detail));
  }
  return { parameters, faults };
}

/** A fault of `parameters`. Names of parameters may have dots, which are no steps of the path. */
export function parameterFault(name: string, code: string, detail: string): FieldFault {
  const field = /^[\w-]+$/.test(name) ? `parameters.${name}` : `parameters[${JSON.stringify(name)}]`;
  return { field, pointer: `/parameters/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`, code, detail };
}
