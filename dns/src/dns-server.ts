import { setTimeout as delay } from "node:timers/promises";
import type { Endpoint } from "@holdfast/common/endpoint.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { ZoneBatch } from "@holdfast/proto/holdfast/dns/v1/zone_pb.ts";
import { answer } from "./answer.ts";
import { createSourceRate } from "./source-rate.ts";
import { startTcpServer } from "./tcp-server.ts";
import { startUdpServer } from "./udp-server.ts";
import type { Zone, ZoneChange } from "./zone.ts";
import { createZoneFile } from "./zone-file.ts";

export interface DnsServerDeps {
  readonly host: string;
  /** 0 takes a free one, the same for UDP and TCP. */
  readonly port: number;
  /** Where it answers besides. */
  readonly alsoListen?: readonly Endpoint[];
  readonly directory: string;
  readonly nameServerAddresses: readonly string[];
  readonly queriesPerSecond: number;
  readonly monotonicMs: () => number;
  readonly log: Log;
}

/** The zone on UDP and TCP, in memory and on disk. It answers whether anybody feeds it or not. */
export interface DnsServer {
  readonly port: number;
  readonly zone: Zone;
  /** Takes a batch and serves it at once; the disk has it soon after. Answers the revision served. */
  apply(batch: ZoneBatch): bigint;
  close(): Promise<void>;
}

const writeEveryMs = 200;
const retryWriteMs = 5_000;

export async function startDnsServer(deps: DnsServerDeps): Promise<DnsServer> {
  const { host, port, alsoListen = [], directory, nameServerAddresses, monotonicMs, log } = deps;
  const file = createZoneFile(directory, log);
  const zone = await file.read();
  const rate = () => createSourceRate(deps.queriesPerSecond, monotonicMs);
  const rates = { udp: rate(), tcp: rate() };
  const answerBy = (transport: "udp" | "tcp") => (query: Buffer) => {
    try {
      return answer(query, zone, { transport, nameServerAddresses });
    } catch (error) {
      // One packet must not end the service of all names.
      log.error("query not answered", { error, query: query.subarray(0, 512).toString("base64") });
      return undefined;
    }
  };
  const listeners: { close(): Promise<void> }[] = [];
  // Each address has sockets of its own: an answer comes from where it was asked.
  async function listen(at: Endpoint): Promise<number> {
    const udp = await startUdpServer({ ...at, answer: answerBy("udp"), rate: rates.udp, log });
    listeners.push(udp);
    const tcp = { host: at.host, port: udp.port, answer: answerBy("tcp"), rate: rates.tcp, log };
    listeners.push(await startTcpServer(tcp));
    return udp.port;
  }
  const listensAt = await listen({ host, port });
  for (const at of alsoListen) await listen(at);

  const closing = new AbortController();
  /** What the disk has not. */
  let changes: ZoneChange[] = [];
  /** The zone on disk is not the one that the changes are of. */
  let isOther = false;
  /** A whole zone is coming, in parts. */
  let isComing = false;
  let unwritten = false;
  let writing: Promise<void> | undefined;

  async function writeAll(): Promise<void> {
    while (unwritten && !closing.signal.aborted) {
      const written = await write();
      const waitMs = written ? writeEveryMs : retryWriteMs;
      await delay(waitMs, undefined, { ref: false, signal: closing.signal }).catch(() => undefined);
    }
    writing = undefined;
  }

  async function write(): Promise<boolean> {
    const [changed, isWhole] = [changes, isOther || file.isLong];
    [unwritten, changes, isOther] = [false, [], false];
    try {
      if (isWhole) await file.write(zone.snapshot());
      else await file.append(changed);
      return true;
    } catch (error) {
      log.error("zone not written to disk", { error: String(error) });
      [unwritten, isOther] = [true, true];
      return false;
    }
  }

  return {
    port: listensAt,
    zone,
    apply(batch) {
      zone.apply(batch);
      isComing ||= batch.reset;
      isOther ||= isComing;
      changes.push(batch);
      if (batch.synced) {
        isComing = false;
        unwritten = true;
        writing ??= writeAll();
      }
      return zone.revision;
    },
    async close() {
      closing.abort();
      await Promise.all([...listeners.map((listener) => listener.close()), writing]);
      if (unwritten) await write();
    },
  };
}
