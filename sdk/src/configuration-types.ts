import type { Operation } from "./operation-types.ts";

/** Has the engine taken a parameter? "rejected" was taken back, because the engine would not run with it. */
export type ParameterStatus = "applied" | "pending_restart" | "rejected";

/** A parameter of an engine. Values are texts, as the engine writes them. */
export interface ParameterState {
  readonly value: string;
  readonly default: string;
  readonly status: ParameterStatus;
  readonly reason: string | null;
}

/** All parameters of a service, by name. */
export interface Configuration {
  readonly parameters: Readonly<Record<string, ParameterState>>;
  /** What brings a change to the engine, until it is over. */
  readonly operation: Operation | null;
}

/** null resets a parameter. */
export type ParameterChange = Readonly<Record<string, string | null>>;
