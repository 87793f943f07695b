import { lookUp } from "./look-up.ts";

/** One setting of a process: its environment variable, description, fallback and parser. */
export interface Setting<T> {
  readonly variable: string;
  /** Name of the variable in earlier releases, which is read if the present one is not set. */
  readonly formerly?: string;
  readonly description: string;
  readonly fallback: string | undefined;
  readonly parse: (value: string) => T;
}

/** Parsed values of a set of settings. */
export type ValuesOf<S extends Record<string, Setting<unknown>>> = {
  [K in keyof S]: S[K] extends Setting<infer T> ? T : never;
};

/** A string setting, used unchanged. It is required if there is no fallback. */
export function text(variable: string, description: string, fallback?: string): Setting<string> {
  return { variable, description, fallback, parse: (value) => value };
}

/** A non-negative integer. */
export function integer(variable: string, description: string, fallback?: number): Setting<number> {
  return {
    variable,
    description,
    fallback: fallback?.toString(),
    parse(value) {
      const number = Number(value);
      if (!Number.isSafeInteger(number) || number < 0) throw new Error(`${value} is not an integer from 0 on`);
      return number;
    },
  };
}

/** A comma-separated list; the empty string is an empty list. */
export function list(variable: string, description: string, fallback = ""): Setting<string[]> {
  const parse = (value: string) =>
    value
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== "");
  return { variable, description, fallback, parse };
}

/** Reads all settings; undefined: there are none. Throws one error that lists every problem. */
export function readConfig<S extends Record<string, Setting<unknown>>>(
  settings: S | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): ValuesOf<S> {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [name, setting] of Object.entries(settings ?? {})) {
    const { variable, formerly } = setting;
    const former = formerly === undefined ? undefined : lookUp(environment, formerly);
    const value = lookUp(environment, variable) ?? former ?? setting.fallback;
    if (value === undefined) {
      problems.push(`${variable} is not set: ${setting.description}`);
      continue;
    }
    try {
      values[name] = setting.parse(value);
    } catch (error) {
      problems.push(`${variable}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  if (problems.length > 0) throw new Error(`configuration:\n  ${problems.join("\n  ")}`);
  return values as ValuesOf<S>;
}
