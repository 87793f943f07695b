import type { Configuration, ParameterState } from "@holdfast/sdk/responses.ts";

/** A parameter of an engine with its name. */
export interface Parameter extends ParameterState {
  readonly name: string;
}

/** Which parameters a table has: all, those with another value than the default, or those that are not applied. */
export type Choice = "all" | "changed" | "waiting";

/** The parameters of the choice whose names contain the text, by name. */
export function parametersOf({ parameters }: Configuration, choice: Choice, text: string): readonly Parameter[] {
  const part = text.trim().toLowerCase();
  return Object.entries(parameters)
    .map(([name, state]) => ({ name, ...state }))
    .filter(({ name }) => name.toLowerCase().includes(part))
    .filter(({ value, default: usual, status }) => {
      if (choice === "waiting") return status !== "applied";
      return choice === "all" || value !== usual;
    })
    .toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

/** Names of parameters that take effect at the next restart of the engine. */
export function namesForRestart({ parameters }: Configuration): readonly string[] {
  return Object.entries(parameters)
    .filter(([, { status }]) => status === "pending_restart")
    .map(([name]) => name)
    .toSorted();
}
