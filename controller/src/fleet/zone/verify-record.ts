import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { isIPv6 } from "node:net";
import { endpointOf } from "@holdfast/common/endpoint.ts";
import { decode, encode } from "dns-packet";
import type { ServedZone } from "./zone-service.ts";

const responseTimeoutMs = 500;
const initialDelayMs = 10;
const maxDelayMs = 400;

/** Waits until DNS servers serve a record. */
export interface RecordVerifier {
  /**
   * Resolves when each of these servers (host:port) responds to a UDP query with exactly these addresses; without
   * addresses, when the name no longer exists. Rejects only if the signal aborts.
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
export function createRecordVerifier(zone: Pick<ServedZone, "onAcknowledged">): RecordVerifier {
  async function verifyAt(server: string, name: string, expected: string, signal: AbortSignal): Promise<void> {
    for (let waitMs = initialDelayMs; ; waitMs = Math.min(waitMs * 2, maxDelayMs)) {
      // Subscribed before the query, so that an acknowledgment between the response and the wait is not missed.
      const acknowledged = nextAcknowledgment();
      try {
        const found = await queryAddresses(server, name, responseTimeoutMs, signal).catch(() => undefined);
        if (found !== undefined && canonical(found) === expected) return;
        signal.throwIfAborted();
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
      const expected = canonical(addresses);
      await Promise.all(servers.map((server) => verifyAt(server, name, expected, signal)));
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
  const [v4, v6] = await Promise.all(
    (["A", "AAAA"] as const).map((type) => query(server, name, type, timeoutMs, signal)),
  );
  return [...(v4 ?? []), ...(v6 ?? [])];
}

function query(server: string, name: string, type: "A" | "AAAA", timeoutMs: number, signal: AbortSignal) {
  const { host, port } = endpointOf(server);
  const id = randomInt(65_536);
  const packet = encode({ type: "query", id, questions: [{ type, class: "IN", name }] });
  const socket = createSocket(isIPv6(host) ? "udp6" : "udp4");
  return new Promise<string[]>((resolve, reject) => {
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

/** The addresses in an authoritative response to this query; undefined for any other packet. */
function addressesOf(message: Buffer, id: number, type: "A" | "AAAA"): string[] | undefined {
  try {
    const response = decode(message);
    const isConclusive = "rcode" in response && (response.rcode === "NOERROR" || response.rcode === "NXDOMAIN");
    if (response.id !== id || response.type !== "response" || !isConclusive || response.flag_aa !== true)
      return undefined;
    return (response.answers ?? []).flatMap((each) => (each.type === type ? [each.data] : []));
  } catch {
    return undefined;
  }
}
