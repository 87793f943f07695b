import type { ControlLoop } from "../runtime/runner.ts";
import { timed, type WorkTimes } from "./process-metrics.ts";

/** Work of the runner with the times of its reconciles. */
export function timedReconciled({ reconciler, ...rest }: ControlLoop, times: WorkTimes): ControlLoop {
  const reconcile: typeof reconciler.reconcile = (key, signal) =>
    timed(times, reconciler.name, () => reconciler.reconcile(key, signal));
  return { ...rest, reconciler: { ...reconciler, reconcile } };
}
