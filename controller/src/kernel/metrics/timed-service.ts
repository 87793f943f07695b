import type { Call, ServedService } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { timed, type WorkTimes } from "./process-metrics.ts";

/** A service with the times of its unary methods, over REST and gRPC alike; streams last as long as their readers. */
export function timedService(served: ServedService, times: WorkTimes): ServedService {
  const handlers: Record<string, (input: never, call: Call) => unknown> = { ...served.handlers };
  for (const method of served.service.methods) {
    const handler = lookUp(served.handlers, method.localName);
    if (handler === undefined || method.methodKind !== "unary") continue;
    const name = `${served.service.typeName}/${method.name}`;
    const outcomeOf = (error: unknown) => HoldfastError.from(error).code;
    handlers[method.localName] = (input, call) =>
      timed(times, name, async () => handler(input, call) as Promise<unknown>, outcomeOf);
  }
  return { ...served, handlers };
}
