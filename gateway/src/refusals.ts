import type { RefusedCall } from "@holdfast/common/call.ts";
import type { ApiMethod } from "./method.ts";

/** Reports a call that did not reach its method. Refused reads are not reported. */
export type TellRefused = (method: ApiMethod, refused: Omit<RefusedCall, "method">) => void;

/** `listener` is told of refused changes; a method reports its own refusals itself. */
export function createRefusals(listener: ((refused: RefusedCall) => void) | undefined): TellRefused {
  return (method, { principal, source, requestId, error, input }) => {
    if (method.readOnly) return;
    listener?.({ method: method.description, principal, source, requestId, error, ...(input && { input }) });
  };
}
