import { setTimeout as delay } from "node:timers/promises";
import type { Endpoint } from "@holdfast/common/endpoint.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { ZoneBatch } from "@holdfast/proto/holdfast/dns/v1/zone_pb.ts";
import { respondTo } from "./response.ts";
import { createQueryRateLimit } from "./query-rate-limit.ts";
import { startTcpServer } from "./tcp-server.ts";
import { startUdpServer } from "./udp-server.ts";
import type { Zone, ZoneChange } from "./zone.ts";
import { createZoneFile } from "./zone-file.ts";

export interface DnsServerDeps {
  readonly host: string;
  /** Port for UDP and TCP; 0 selects a free one. */
  readonly port: number;
  /** Other endpoints to listen on, in addition to `host` and `port`. */
  readonly alsoListen?: readonly Endpoint[];
  /** Endpoints to listen on if no other program does; failures are logged. */
  readonly ifFree?: readonly Endpoint[];
  readonly directory: string;
  readonly nameServerAddresses: readonly string[];
  readonly queriesPerSecond: number;
  readonly monotonicMs: () => number;
  readonly log: Log;
}

/**
 * An authoritative DNS server over UDP and TCP. The zone is in memory and on disk, so it serves after a restart and
 * without controllers. A feed applies changes, which are served immediately and written to disk every 200 ms.
 */
export interface DnsServer {
  readonly port: number;
  readonly zone: Zone;
  /** Applies a batch and returns the served revision. The batch is on disk at most 200 ms later, unless that fails. */
  apply(batch: ZoneBatch): bigint;
  close(): Promise<void>;
}

const writeIntervalMs = 200;
const writeRetryDelayMs = 5_000;

export async function startDnsServer(deps: DnsServerDeps): Promise<DnsServer> {
  const { host, port, alsoListen = [], ifFree = [], directory, nameServerAddresses, monotonicMs, log } = deps;
  const file = createZoneFile(directory, log);
  const zone = await file.read();
  const createRateLimit = () => createQueryRateLimit(deps.queriesPerSecond, monotonicMs);
  const rateLimits = { udp: createRateLimit(), tcp: createRateLimit() };
  const responderFor = (transport: "udp" | "tcp") => (query: Buffer) => {
    try {
      return respondTo(query, zone, { transport, nameServerAddresses });
    } catch (error) {
      // A single packet must not stop the server.
      log.error("query failed", { error, query: query.subarray(0, 512).toString("base64") });
      return undefined;
    }
  };
  const listeners: { close(): Promise<void> }[] = [];
  // Each address has its own sockets, so that responses come from the queried address.
  async function listen(at: Endpoint): Promise<number> {
    const udp = await startUdpServer({ ...at, respond: responderFor("udp"), rate: rateLimits.udp, log });
    listeners.push(udp);
    const tcp = { host: at.host, port: udp.port, respond: responderFor("tcp"), rate: rateLimits.tcp, log };
    listeners.push(await startTcpServer(tcp));
    return udp.port;
  }
  const listensAt = await listen({ host, port });
  for (const at of alsoListen) await listen(at);
  for (const at of ifFree)
    await listen(at).catch((error: unknown) => log.info("listener for resolvers not opened", { ...at, error }));

  const closing = new AbortController();
  /** Changes that are not on disk yet. */
  let unwrittenChanges: ZoneChange[] = [];
  /** True if the changes do not apply to the zone on disk, so that a full write is needed. */
  let needsFullWrite = false;
  /** True while a full zone arrives in several batches. */
  let isReset = false;
  let isDirty = false;
  let writing: Promise<void> | undefined;

  async function writeUntilClean(): Promise<void> {
    while (isDirty && !closing.signal.aborted) {
      const written = await write();
      const waitMs = written ? writeIntervalMs : writeRetryDelayMs;
      await delay(waitMs, undefined, { ref: false, signal: closing.signal }).catch(() => undefined);
    }
    writing = undefined;
  }

  async function write(): Promise<boolean> {
    const [pending, isFull] = [unwrittenChanges, needsFullWrite || file.needsCompaction];
    [isDirty, unwrittenChanges, needsFullWrite] = [false, [], false];
    try {
      if (isFull) await file.write(zone.snapshot());
      else await file.append(pending);
      return true;
    } catch (error) {
      log.error("zone not written to disk", { error: String(error) });
      [isDirty, needsFullWrite] = [true, true];
      return false;
    }
  }

  return {
    port: listensAt,
    zone,
    apply(batch) {
      zone.apply(batch);
      isReset ||= batch.reset;
      needsFullWrite ||= isReset;
      unwrittenChanges.push(batch);
      if (batch.synced) {
        isReset = false;
        isDirty = true;
        writing ??= writeUntilClean();
      }
      return zone.revision;
    },
    async close() {
      closing.abort();
      await Promise.all([...listeners.map((listener) => listener.close()), writing]);
      if (isDirty) await write();
    },
  };
}
