import type { ServedZone } from "./zone-service.ts";
import { queryAddresses } from "./query-authority.ts";

const answerMs = 500;
const firstWaitMs = 10;
const longestWaitMs = 400;

/** Waits until the world sees a record as it should be. */
export interface RecordVerifier {
  /**
   * Resolves when each of these servers (host:port) answers with exactly these addresses over UDP; no addresses means
   * that the name is gone. Rejects only when the signal aborts.
   */
  verifyRecord(
    servers: readonly string[],
    name: string,
    addresses: readonly string[],
    signal: AbortSignal,
  ): Promise<void>;
}

/**
 * A server's acknowledgement on its stream leads to the next query at once. It may follow another controller, so the
 * queries go on without one, more slowly each time.
 */
export function createRecordVerifier(zone: Pick<ServedZone, "onAcknowledged">): RecordVerifier {
  async function verifyAt(server: string, name: string, expected: string, signal: AbortSignal): Promise<void> {
    for (let waitMs = firstWaitMs; ; waitMs = Math.min(waitMs * 2, longestWaitMs)) {
      // Listening before asking: an acknowledgement between the answer and the wait is not missed.
      const acknowledged = nextAcknowledgement();
      try {
        const found = await queryAddresses(server, name, answerMs, signal).catch(() => undefined);
        if (found !== undefined && canonical(found) === expected) return;
        signal.throwIfAborted();
        await acknowledged.within(waitMs, signal);
      } finally {
        acknowledged.close();
      }
    }
  }

  function nextAcknowledgement() {
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
