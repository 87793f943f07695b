import { isIP } from "node:net";
import { inBackground } from "@holdfast/common/background.ts";
import type { PolicyRule } from "@holdfast/compute/compute-provider.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { PolicySource } from "./policy-source.ts";

/** Addresses and port at which machines reach the object store. */
export interface StoreLocation {
  readonly addresses: () => Promise<readonly string[]>;
  readonly port: number;
}

export interface StorePolicy extends PolicySource {
  close(): void;
}

const resolveIntervalMs = 60_000;

/** Policy source that lets every machine connect to the object store. Its name is resolved every minute. */
export function createStorePolicy(location: StoreLocation | undefined, log: Log): StorePolicy {
  const listeners = new Set<() => void>();
  let addresses: readonly string[] = [];

  async function resolve(): Promise<void> {
    try {
      const found = [...((await location?.addresses()) ?? [])].sort();
      if (found.join() === addresses.join()) return;
      addresses = found;
      for (const listener of listeners) listener();
    } catch (error) {
      // The addresses of the last lookup remain in force.
      log.warn("object store address not resolved", { error });
    }
  }

  const resolveNow = () => inBackground(log, "object store address", resolve());
  const timer = location === undefined ? undefined : setInterval(resolveNow, resolveIntervalMs).unref();
  if (location !== undefined) resolveNow();
  return {
    name: "object-store",
    rulesOn: () => storeRulesOf(addresses, location?.port ?? 0),
    subscribe(onChange) {
      listeners.add(onChange);
      return {
        close: () => {
          listeners.delete(onChange);
        },
      };
    },
    close: () => clearInterval(timer),
  };
}

/** Rules that let every machine connect to these addresses of the object store. */
export function storeRulesOf(addresses: readonly string[], port: number): PolicyRule[] {
  return addresses.map((to) => ({
    owner: { kind: "object-store", id: to },
    to,
    port,
    from: [isIP(to) === 4 ? "0.0.0.0/0" : "::/0"],
  }));
}
