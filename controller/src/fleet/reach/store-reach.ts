import { isIP } from "node:net";
import { inBackground } from "@holdfast/common/background.ts";
import type { ReachRule } from "@holdfast/compute/compute-provider.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { ReachOwner } from "./reach-owner.ts";

/** Where machines find the object store. */
export interface StorePlace {
  readonly addresses: () => Promise<readonly string[]>;
  readonly port: number;
}

export interface StoreReach extends ReachOwner {
  close(): void;
}

const lookEveryMs = 60_000;

/** Opens every host to the object store. Its name may lead elsewhere later: that is looked up again and again. */
export function createStoreReach(place: StorePlace | undefined, log: Log): StoreReach {
  const listeners = new Set<() => void>();
  let addresses: readonly string[] = [];

  async function look(): Promise<void> {
    try {
      const found = [...((await place?.addresses()) ?? [])].sort();
      if (found.join() === addresses.join()) return;
      addresses = found;
      for (const listener of listeners) listener();
    } catch (error) {
      // The known addresses stay in force.
      log.warn("address of the object store not found", { error });
    }
  }

  const lookNow = () => inBackground(log, "address of the object store", look());
  const timer = place === undefined ? undefined : setInterval(lookNow, lookEveryMs).unref();
  if (place !== undefined) lookNow();
  return {
    rulesOn: () => storeRulesOf(addresses, place?.port ?? 0),
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

/** Pure: every machine may call the object store. */
export function storeRulesOf(addresses: readonly string[], port: number): ReachRule[] {
  return addresses.map((to) => ({
    owner: { kind: "object-store", id: to },
    to,
    port,
    from: [isIP(to) === 4 ? "0.0.0.0/0" : "::/0"],
  }));
}
