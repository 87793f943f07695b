import type { Gate } from "./gate.ts";
import type { TellRefused } from "./refusals.ts";
import type { Validation } from "./validation.ts";

/** What REST and gRPC share. */
export interface Entrance {
  readonly gate: Gate;
  readonly validation: Validation;
  readonly refused: TellRefused;
}
