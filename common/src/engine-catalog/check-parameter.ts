import { engineOf, parametersOf } from "./engine-catalog.ts";
import { closestName } from "./closest-name.ts";
import type { Parameter } from "./parameter.ts";
import { parseQuantity, printQuantity, unitsOf } from "./quantity.ts";

export type ParameterCheck =
  | { readonly ok: true; readonly value: string; readonly parameter: Parameter }
  | { readonly ok: false; readonly code: ParameterFaultCode; readonly detail: string };

/** Stable codes of parameter faults. */
export type ParameterFaultCode =
  | "unknown_parameter"
  | "managed_parameter"
  | "wrong_type"
  | "out_of_range"
  | "not_allowed";

/** Normalizes a parameter value to the form that the engine prints, or describes the fault for the user. */
export function checkParameter(engine: string, version: string, name: string, text: string): ParameterCheck {
  const parameters = parametersOf(engine, version);
  const parameter = parameters.get(name);
  if (parameter === undefined) return unknown(engine, version, name);
  return checkValue(parameter, text);
}

function unknown(engine: string, version: string, name: string): ParameterCheck {
  if (engineOf(engine)?.managedParameters.some((pattern) => pattern.test(name)) === true) {
    return fault("managed_parameter", `${name} is set by the platform and cannot be changed`);
  }
  const closest = closestName(name, parametersOf(engine, version).keys());
  const hint = closest === undefined ? "GET /catalog lists the supported ones" : `did you mean ${closest}?`;
  return fault("unknown_parameter", `${engine} ${version} has no parameter ${name} that can be set here; ${hint}`);
}

function checkValue(parameter: Parameter, text: string): ParameterCheck {
  switch (parameter.type) {
    case "boolean":
      return checkBoolean(parameter, text);
    case "enum": {
      const value = parameter.values.find((candidate) => candidate.toLowerCase() === text.toLowerCase());
      if (value !== undefined) return { ok: true, value, parameter };
      return fault("not_allowed", `${parameter.name} must be one of ${parameter.values.join(", ")}`);
    }
    case "text":
      if (parameter.pattern === null || parameter.pattern.test(text)) return { ok: true, value: text, parameter };
      return fault("not_allowed", `${parameter.name} takes ${parameter.description.toLowerCase()}`);
    case "integer":
    case "real":
    case "bytes":
    case "duration":
      return checkNumber(parameter, text);
  }
}

function checkBoolean(parameter: Parameter, text: string): ParameterCheck {
  const [yes, no] = parameter.values.length === 2 ? parameter.values : ["on", "off"];
  const lower = text.toLowerCase();
  if (["on", "true", "yes", "1"].includes(lower)) return { ok: true, value: yes ?? "on", parameter };
  if (["off", "false", "no", "0"].includes(lower)) return { ok: true, value: no ?? "off", parameter };
  return fault("wrong_type", `${parameter.name} is a boolean: ${yes} or ${no}`);
}

function checkNumber(parameter: Parameter, text: string): ParameterCheck {
  const { name, unit, minimum, maximum, minimumEnabled } = parameter;
  const number = unit === null ? plainNumber(text) : parseQuantity(text, unit);
  if (number === undefined || !Number.isFinite(number)) {
    const units = unit === null ? "" : `, alone (in ${unit}) or with one of ${unitsOf(unit).join(", ")}`;
    return fault("wrong_type", `${name} is a number${units}`);
  }
  const isIntegral = Number.isInteger(number) || parameter.type === "real" || isRealDuration(parameter);
  if (!isIntegral) return fault("wrong_type", `${name} is an integer${unit === null ? "" : ` of ${unit}`}`);
  if ((minimum !== null && number < minimum) || (maximum !== null && number > maximum)) {
    const print = (limit: number | null) => (limit === null ? "any" : printNumber(parameter, limit));
    return fault("out_of_range", `${name} is from ${print(minimum)} to ${print(maximum)}`);
  }
  if (minimumEnabled !== null && number !== minimum && number < minimumEnabled)
    return fault("out_of_range", `${name} is ${minimum}, or from ${printNumber(parameter, minimumEnabled)} on`);
  return { ok: true, value: printNumber(parameter, number), parameter };
}

/** Vacuum delays may be fractions of a millisecond. */
function isRealDuration(parameter: Parameter): boolean {
  return parameter.type === "duration" && parameter.name.endsWith("_cost_delay");
}

function printNumber(parameter: Parameter, number: number): string {
  return parameter.unit === null ? String(number) : printQuantity(number, parameter.unit);
}

function plainNumber(text: string): number | undefined {
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text.trim()) ? Number(text) : undefined;
}

function fault(code: ParameterFaultCode, detail: string): ParameterCheck {
  return { ok: false, code, detail };
}
