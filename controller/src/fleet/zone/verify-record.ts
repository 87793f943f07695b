import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { isIPv6 } from "node:net";
import { endpointOf } from "@holdfast/common/endpoint.ts";
import { decode, encode } from "dns-packet";
import type { DnsServerHealth } from "./dns-server-health.ts";
import type { ServedZone } from "./zone-service.ts";

const responseTimeoutMs = 500;
const initialDelayMs = 10;
const maxDelayMs = 400;

/** Waits until DNS servers serve a record. */
export interface RecordVerifier {
  /**
   * Resolves when each of these servers (host:port) responds to a UDP query with exactly these addresses; without
   * addresses, when the name no longer exists. A server that is down is skipped once another one responds so: one that
   * responds with an older answer is not. Rejects only if the signal aborts.
   */
  verifyRecord(
    servers: readonly string[],
    name: string,
    addresses: readonly string[],
    signal: AbortSignal,
  ): Promise<void>;
}

/**
 * An acknowledgment of a server on its stream triggers the next query immediately. A server may follow another
 * controller, so queries are also repeated without an acknowledgment, with a back-off.
 */
export function createRecordVerifier(
  zone: Pick<ServedZone, "onAcknowledged">,
  health: Pick<DnsServerHealth, "reportResponse" | "reportSilence" | "isDown">,
): RecordVerifier {
  /** True if the server responds with the addresses; false if it is down, and others do. */
  async function verifyAt(
    server: string,
    { name, expected, isConfirmed }: { name: string; expected: string; isConfirmed: () => boolean },
    signal: AbortSignal,
  ): Promise<boolean> {
    for (let waitMs = initialDelayMs; ; waitMs = Math.min(waitMs * 2, maxDelayMs)) {
      // Subscribed before the query, so that an acknowledgment between the response and the wait is not missed.
      const acknowledged = nextAcknowledgment();
      try {
        const { hasResponded, addresses } = await query(server, name, signal);
        signal.throwIfAborted();
        if (addresses !== undefined && canonical(addresses) === expected) {
          health.reportResponse(server);
          return true;
        }
        if (hasResponded) health.reportResponse(server);
        else health.reportSilence(server);
        if (!hasResponded && health.isDown(server) && isConfirmed()) return false;
        await acknowledged.within(waitMs, signal);
      } finally {
        acknowledged.close();
      }
    }
  }

  function nextAcknowledgment() {
    const { promise, resolve } = Promise.withResolvers<void>();
    const subscription = zone.onAcknowledged(() => resolve());
    return {
      async within(waitMs: number, signal: AbortSignal): Promise<void> {
        const timer = setTimeout(resolve, waitMs);
        const onAbort = () => resolve();
        signal.addEventListener("abort", onAbort, { once: true });
        await promise;
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        signal.throwIfAborted();
      },
      close: () => subscription.close(),
    };
  }

  return {
    async verifyRecord(servers, name, addresses, signal) {
      let confirmed = 0;
      const record = { name, expected: canonical(addresses), isConfirmed: () => confirmed > 0 };
      await Promise.all(
        servers.map(async (server) => {
          if (await verifyAt(server, record, signal)) confirmed += 1;
        }),
      );
    },
  };
}

function canonical(addresses: readonly string[]): string {
  return [...addresses].sort().join(" ");
}

/** Queries an authoritative server (host:port) for a name's A and AAAA records over UDP. Rejects on a timeout. */
export async function queryAddresses(
  server: string,
  name: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<string[]> {
  const { addresses } = await query(server, name, signal, timeoutMs);
  if (addresses === undefined) throw new Error("the DNS server did not respond");
  return addresses;
}

export interface QueryResult {
  /** True after any response to the query, such as a refusal. */
  readonly hasResponded: boolean;
  /** The addresses, if the server is an authority for the name. */
  readonly addresses: string[] | undefined;
}

/** Queries a server for a name's A and AAAA records over UDP. */
export async function query(
  server: string,
  name: string,
  signal: AbortSignal,
  timeoutMs = responseTimeoutMs,
): Promise<QueryResult> {
  const types = ["A", "AAAA"] as const;
  const responses = await Promise.allSettled(types.map((type) => queryType(server, name, type, timeoutMs, signal)));
  const received = responses.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const conclusive = received.flatMap((each) => (each === "inconclusive" ? [] : [each]));
  return {
    hasResponded: received.length > 0,
    addresses: conclusive.length === types.length ? conclusive.flat() : undefined,
  };
}

function queryType(server: string, name: string, type: "A" | "AAAA", timeoutMs: number, signal: AbortSignal) {
  const { host, port } = endpointOf(server);
  const id = randomInt(65_536);
  const packet = encode({ type: "query", id, questions: [{ type, class: "IN", name }] });
  const socket = createSocket(isIPv6(host) ? "udp6" : "udp4");
  return new Promise<string[] | "inconclusive">((resolve, reject) => {
    const giveUp = () => reject(new Error("the DNS server did not respond"));
    const timer = setTimeout(giveUp, timeoutMs);
    signal.addEventListener("abort", giveUp, { once: true });
    socket.on("error", reject);
    // A connected socket receives packets of its server only, and gets an error immediately if nothing listens there.
    socket.connect(port, host, () => socket.send(packet));
    socket.on("message", (message) => {
      const addresses = addressesOf(message, id, type);
      if (addresses !== undefined) resolve(addresses);
    });
    socket.on("close", () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", giveUp);
    });
  }).finally(() => socket.close());
}

/**
 * The addresses in an authoritative response to this query; "inconclusive" for its other responses, such as refusals.
 * Undefined for any other packet.
 */
function addressesOf(message: Buffer, id: number, type: "A" | "AAAA"): string[] | "inconclusive" | undefined {
  try {
    const response = decode(message);
    if (response.id !== id || response.type !== "response") return undefined;
    const isConclusive = "rcode" in response && (response.rcode === "NOERROR" || response.rcode === "NXDOMAIN");
    if (!isConclusive || response.flag_aa !== true) return "inconclusive";
    return (response.answers ?? []).flatMap((each) => (each.type === type ? [each.data] : []));
  } catch {
    return undefined;
  }
}
