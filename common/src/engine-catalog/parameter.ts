/** One configuration parameter of an engine. Limits are numbers of `unit`; strings have the engine's output format. */
export interface Parameter {
  readonly name: string;
  readonly type: ParameterType;
  readonly description: string;
  /** The platform's default; null if the plan or the number of nodes determines it. */
  readonly default: string | null;
  readonly minimum: number | null;
  readonly maximum: number | null;
  /** Smallest effective value, if `minimum` disables the parameter; null if there is no such gap. */
  readonly minimumEnabled: number | null;
  /** Values of an enum. */
  readonly values: readonly string[];
  /**
   * Unit of a bare number; null for a plain number. `byte` is printed without a unit, as valkey does; `B` in larger
   * units.
   */
  readonly unit: Unit | null;
  readonly needsRestart: boolean;
  /** Versions that have the parameter; empty means all. */
  readonly versions: readonly string[];
  /** Pattern of a valid value. */
  readonly pattern: RegExp | null;
}

export type ParameterType = "integer" | "real" | "boolean" | "enum" | "text" | "bytes" | "duration";

export type Unit = "byte" | "B" | "kB" | "8kB" | "MB" | "ms" | "s" | "min";

/** Optional properties of a parameter; an absent limit means unlimited. */
export interface ParameterLimits {
  readonly unit?: Unit;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minimumEnabled?: number;
  readonly values?: readonly string[];
  readonly versions?: readonly string[];
  readonly pattern?: RegExp;
  readonly needsRestart?: boolean;
}

/** Creates a row of an engine's parameter table. By default a running engine applies changes. */
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
    minimumEnabled: limits.minimumEnabled ?? null,
    values: limits.values ?? [],
    unit: limits.unit ?? null,
    needsRestart: limits.needsRestart ?? false,
    versions: limits.versions ?? [],
    pattern: limits.pattern ?? null,
  };
}

/** Clamps a stored value to the current limits, which may be narrower than when it was stored. */
export function withinLimits({ unit, minimum, maximum }: Limited, value: string): string {
  const number = Number(value);
  if ((unit !== null && unit !== "byte") || value === "" || Number.isNaN(number)) return value;
  if (maximum !== null && number > Number(maximum)) return String(maximum);
  if (minimum !== null && number < Number(minimum)) return String(minimum);
  return value;
}

/** Limits as numbers (in the catalog) or as strings (for users). */
interface Limited {
  readonly unit: string | null;
  readonly minimum: number | string | null;
  readonly maximum: number | string | null;
}
