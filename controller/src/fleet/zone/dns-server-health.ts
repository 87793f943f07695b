import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "@holdfast/common/log.ts";

/**
 * Which DNS servers respond, with an old answer too: the queries of record verifications report it, and so does one
 * query of each server every 10 seconds. A server that has been silent for 5 seconds is down.
 */
export interface DnsServerHealth {
  reportResponse(server: string): void;
  reportSilence(server: string): void;
  isDown(server: string): boolean;
  /** Each configured server, with 1 while it responds, and 0 while it is down. */
  values(): [server: string, isUp: number][];
  /** Queries the servers until the signal aborts. */
  watch(query: (server: string) => Promise<{ readonly hasResponded: boolean }>, signal: AbortSignal): Promise<void>;
}

export interface DnsServerHealthDeps {
  /** Configured servers (host:port). */
  readonly servers: readonly string[];
  readonly monotonicMs: () => number;
  readonly log: Pick<Log, "info" | "warn">;
  /** Time without a response after which a server is down. */
  readonly downAfterMs?: number;
  readonly queryIntervalMs?: number;
}

export function createDnsServerHealth(deps: DnsServerHealthDeps): DnsServerHealth {
  const { servers, monotonicMs, log, downAfterMs = 5_000, queryIntervalMs = 10_000 } = deps;
  /** Silent servers, with the time of the first query without a response. */
  const silent = new Map<string, { readonly since: number; isDown: boolean }>();

  function report(server: string, hasResponded: boolean): void {
    const before = silent.get(server);
    if (hasResponded) {
      silent.delete(server);
      if (before?.isDown) log.info("dns server responds again", { server });
      return;
    }
    const found = before ?? { since: monotonicMs(), isDown: false };
    silent.set(server, found);
    if (found.isDown || monotonicMs() - found.since < downAfterMs) return;
    found.isDown = true;
    log.warn("dns server does not respond", { server });
  }

  return {
    reportResponse: (server) => report(server, true),
    reportSilence: (server) => report(server, false),
    isDown: (server) => silent.get(server)?.isDown ?? false,
    values: () => servers.map((server) => [server, silent.get(server)?.isDown ? 0 : 1]),
    async watch(query, signal) {
      while (!signal.aborted) {
        await Promise.all(
          servers.map(async (server) => {
            const { hasResponded } = await query(server);
            if (!signal.aborted) report(server, hasResponded);
          }),
        );
        await sleep(queryIntervalMs, undefined, { signal, ref: false }).catch(() => undefined);
      }
    },
  };
}
