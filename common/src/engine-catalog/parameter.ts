/** One tuning parameter of an engine. Limits are numbers of `unit`; texts are as the engine itself prints them. */
export interface Parameter {
  readonly name: string;
  readonly type: ParameterType;
  readonly description: string;
  /** What an instance runs with when nobody set it; null where the plan decides. */
  readonly default: string | null;
  readonly minimum: number | null;
  readonly maximum: number | null;
  /** Least value beside `minimum`, which turns the parameter off; null where there is no such gap. */
  readonly leastOn: number | null;
  /** Values of an enum. */
  readonly values: readonly string[];
  /** What a bare number counts; null for a plain number. `byte` is printed bare, as valkey does, `B` in larger units. */
  readonly unit: Unit | null;
  readonly needsRestart: boolean;
  /** Versions that have it; empty means all. */
  readonly versions: readonly string[];
  /** What a text must match. */
  readonly pattern: RegExp | null;
}

export type ParameterType = "integer" | "real" | "boolean" | "enum" | "text" | "bytes" | "duration";

export type Unit = "byte" | "B" | "kB" | "8kB" | "MB" | "ms" | "s" | "min";

/** What is not the same for all parameters; what is left out is not limited. */
export interface ParameterLimits {
  readonly unit?: Unit;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly leastOn?: number;
  readonly values?: readonly string[];
  readonly versions?: readonly string[];
  readonly pattern?: RegExp;
  readonly needsRestart?: boolean;
}

/** A row of an engine's table of parameters: one that a running engine takes, unless its limits say otherwise. */
export function parameterOf(
  name: string,
  type: ParameterType,
  fallback: string | null,
  limits: ParameterLimits,
  description: string,
): Parameter {
  return {
    name,
    type,
    description,
    default: fallback,
    minimum: limits.minimum ?? null,
    maximum: limits.maximum ?? null,
    leastOn: limits.leastOn ?? null,
    values: limits.values ?? [],
    unit: limits.unit ?? null,
    needsRestart: limits.needsRestart ?? false,
    versions: limits.versions ?? [],
    pattern: limits.pattern ?? null,
  };
}

/** Pure: the value within today's limits; one that was stored under wider ones is cut to them. */
export function withinLimits({ unit, minimum, maximum }: Limited, value: string): string {
  const number = Number(value);
  if (unit !== null || value === "" || Number.isNaN(number)) return value;
  if (maximum !== null && number > Number(maximum)) return String(maximum);
  if (minimum !== null && number < Number(minimum)) return String(minimum);
  return value;
}

/** A plain number of the catalog; what is offered to users has its limits printed. */
interface Limited {
  readonly unit: string | null;
  readonly minimum: number | string | null;
  readonly maximum: number | string | null;
}
