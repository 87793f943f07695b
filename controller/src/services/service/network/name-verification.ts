import type { ServiceName } from "./service-names.ts";

/** Verifies that the authoritative DNS servers resolve names to the stored addresses. Confirmed results are cached. */
export interface NameVerification {
  isVerified(serviceId: string, names: readonly ServiceName[]): boolean;
  /**
   * Resolves to true if every server returns exactly these addresses; without addresses, if no server resolves the
   * name.
   */
  verify(serviceId: string, names: readonly ServiceName[], signal: AbortSignal): Promise<boolean>;
  forget(serviceId: string): void;
}

/** Time limit of one verification; the reconciler repeats it. */
const queryTimeoutMs = 2_000;

/** `query` resolves when every server agrees on one name, and rejects when the signal aborts. */
export function createNameVerification(
  query: (name: string, addresses: readonly string[], signal: AbortSignal) => Promise<void>,
): NameVerification {
  const confirmed = new Map<string, string>();
  const label = (names: readonly ServiceName[]) => JSON.stringify(names);
  return {
    isVerified: (serviceId, names) => confirmed.get(serviceId) === label(names),
    async verify(serviceId, names, signal) {
      const patience = AbortSignal.any([signal, AbortSignal.timeout(queryTimeoutMs)]);
      try {
        await Promise.all(names.map(({ name, addresses }) => query(name, addresses, patience)));
      } catch {
        signal.throwIfAborted();
        return false;
      }
      confirmed.set(serviceId, label(names));
      return true;
    },
    forget: (serviceId) => {
      confirmed.delete(serviceId);
    },
  };
}
