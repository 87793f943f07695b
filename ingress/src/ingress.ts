import { createBackOff } from "@holdfast/common/back-off.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Certificate, Haproxy } from "./haproxy.ts";
import { commandsBetween, type HaproxyFiles } from "./haproxy-commands.ts";
import { emptyTable, type Route, type RouteTable, withRoutes } from "./route-table.ts";

export interface IngressDeps {
  readonly haproxy: Haproxy;
  readonly files: HaproxyFiles;
  readonly routes: () => ReadonlyMap<string, Route>;
  readonly certificate: () => Certificate;
  /** True if HAProxy also has work without a route. */
  readonly startsWithoutRoutes: boolean;
  /** Resolves after the time, or when the signal aborts. */
  readonly delay: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly random: () => number;
  readonly log: Log;
}

/**
 * Converges HAProxy to the routes: by commands where that is possible, else by a process beside the running one. The
 * first process starts with the first route, so that an installation without hosted apps has none, unless challenges of
 * other hosts pass through it.
 */
export interface Ingress {
  /** Reports that routes, the certificate or the process have changed. */
  changed(): void;
  /** Converges until the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
}

export function createIngress(deps: IngressDeps): Ingress {
  const { haproxy, files, routes, certificate, startsWithoutRoutes, delay, random, log } = deps;
  const backOff = createBackOff(100, 10_000, random);
  let served: RouteTable = emptyTable;
  let servedCertificate = "";
  /** False if the effect of the last commands is unknown. */
  let isCertain = true;
  let wake = Promise.withResolvers<void>();

  async function converge(): Promise<void> {
    const table = withRoutes(served, routes());
    if (!haproxy.isRunning && routes().size === 0 && !startsWithoutRoutes) return;
    const current = certificate();
    if (isCertain && haproxy.isRunning && served.backends.length === table.backends.length) {
      if (servedCertificate !== current.certificate) await haproxy.renew(current);
      await haproxy.run(commandsBetween(served, table, files));
    } else {
      await haproxy.start(table, current);
    }
    served = table;
    servedCertificate = current.certificate;
    isCertain = true;
  }

  return {
    changed: () => wake.resolve(),
    async run(signal) {
      const stop = () => wake.resolve();
      signal.addEventListener("abort", stop, { once: true });
      while (!signal.aborted) {
        wake = Promise.withResolvers();
        try {
          await converge();
          backOff.reset();
          if (!signal.aborted) await wake.promise;
        } catch (error) {
          // Another process begins with all routes.
          isCertain = false;
          log.error("routes not served", { error });
          await delay(backOff.nextMs(), signal);
        }
      }
      signal.removeEventListener("abort", stop);
      await haproxy.stop();
    },
  };
}
