/** One tuning parameter of an engine. Limits are numbers of `unit`; texts are as the engine itself prints them. */
export interface Parameter {
  readonly name: string;
  readonly type: ParameterType;
  readonly description: string;
  /** What an instance runs with when nobody set it; null where the plan decides. */
  readonly default: string | null;
  readonly minimum: number | null;
  readonly maximum: number | null;
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
