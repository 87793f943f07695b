import type { Call, ServedService } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { timed, type WorkTimes, type ProcessMetrics } from "./process-metrics.ts";
import type { Store } from "../store/store.ts";
import type { ControlLoop } from "../runtime/runner.ts";

/**
 * A service that records the duration of its unary methods, over REST and gRPC. Streams are not timed: a stream lasts
 * as long as its reader.
 */
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

/** A store that records the duration of its calls. */
export function timedStore(store: Store, metrics: Pick<ProcessMetrics, "times">): Store {
  const times = metrics.times("etcd_call_seconds", "Calls of etcd", "call");
  return {
    ...store,
    get: (...args) => timed(times, "get", () => store.get(...args)),
    list: (...args) => timed(times, "list", () => store.list(...args)),
    commit: (...args) => timed(times, "commit", () => store.commit(...args)),
    revision: (...args) => timed(times, "revision", () => store.revision(...args)),
  };
}

/** A control loop that records the duration of its reconciles. */
export function timedReconciled({ reconciler, ...rest }: ControlLoop, times: WorkTimes): ControlLoop {
  const reconcile: typeof reconciler.reconcile = (key, signal) =>
    timed(times, reconciler.name, () => reconciler.reconcile(key, signal));
  return { ...rest, reconciler: { ...reconciler, reconcile } };
}
