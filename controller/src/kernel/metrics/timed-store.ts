import type { Store } from "../store/store.ts";
import { type ProcessMetrics, timed } from "./process-metrics.ts";

/** The store, with the times of its calls among the metrics. */
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
