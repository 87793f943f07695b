import type { Collection } from "#kernel/store/collection.ts";
import type { HostObject } from "./host.ts";

/** A host that does not respond delays what depends on its facts by at most this time. */
const reportMs = 5_000;

/**
 * Resolves when there is a host and each one has reported its facts, but at the latest after 5 s. Facts are missing
 * just after the first start of an installation, and after a host joins.
 */
export function untilHostsReport(
  hosts: Pick<Collection<HostObject>, "values" | "subscribe">,
  signal: AbortSignal,
  timeoutMs = reportMs,
): Promise<void> {
  const haveReported = () => {
    const all = [...hosts.values()];
    return all.length > 0 && all.every(({ object }) => object.status.facts !== null);
  };
  if (haveReported() || signal.aborted) return Promise.resolve();
  const ended = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  return new Promise((resolve) => {
    const watch = hosts.subscribe(() => {
      if (haveReported()) end();
    });
    function end(): void {
      watch.close();
      ended.removeEventListener("abort", end);
      resolve();
    }
    ended.addEventListener("abort", end);
  });
}
