import type { ServedZone } from "./zone-service.ts";
import { queryAddresses } from "./query-authority.ts";

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
