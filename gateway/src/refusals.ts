import type { RefusedCall } from "@holdfast/common/call.ts";
import type { ApiMethod } from "./method.ts";

/** Tells that a call did not come to its method. Reads are told to nobody. */
export type TellRefused = (method: ApiMethod, refused: Omit<RefusedCall, "method">) => void;

/** `listener` is told of changes; what a method itself refuses is its own affair. */
export function createRefusals(listener: ((refused: RefusedCall) => void) | undefined): TellRefused {
  return (method, { principal, source, requestId, error, input }) => {
    if (method.readOnly) return;
    listener?.({ method: method.description, principal, source, requestId, error, ...(input && { input }) });
  };
}
