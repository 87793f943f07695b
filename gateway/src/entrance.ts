import type { Call } from "@holdfast/common/call.ts";
import type { Gate } from "./gate.ts";
import type { ApiMethod } from "./method.ts";
import type { Places } from "./places.ts";
import type { TellRefused } from "./refusals.ts";
import type { Validation } from "./validation.ts";

/** What REST and gRPC share. */
export interface Entrance {
  readonly gate: Gate;
  readonly validation: Validation;
  readonly refused: TellRefused;
  /** For calls of methods that are dear. */
  readonly dear: Places;
  /**
   * Resolves when reads show the revision that the caller names; throws RATE_LIMITED when too many of its calls wait
   * for one.
   */
  readonly shown: (method: ApiMethod, call: Pick<Call, "minRevision" | "principal">) => Promise<void>;
}
