import type { ServiceName } from "./service-names.ts";

/** Asks the authoritative servers whether they answer as the store says; remembers what they confirmed. */
export interface NameVerification {
  isVerified(serviceId: string, names: readonly ServiceName[]): boolean;
  /** Resolves true when every server answers with exactly these addresses; none means that the name is gone. */
  verify(serviceId: string, names: readonly ServiceName[], signal: AbortSignal): Promise<boolean>;
  forget(serviceId: string): void;
}

/** How long one look waits for the servers; the reconciler looks again. */
const patienceMs = 2_000;

/** `ask` resolves when every server agrees on one name, and rejects when the signal aborts. */
export function createNameVerification(
  ask: (name: string, addresses: readonly string[], signal: AbortSignal) => Promise<void>,
): NameVerification {
  const confirmed = new Map<string, string>();
  const label = (names: readonly ServiceName[]) => JSON.stringify(names);
  return {
    isVerified: (serviceId, names) => confirmed.get(serviceId) === label(names),
    async verify(serviceId, names, signal) {
      const patience = AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]);
      try {
        await Promise.all(names.map(({ name, addresses }) => ask(name, addresses, patience)));
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
