import type { ControllerRegistry } from "./controller-registry.ts";

/** Addresses at which controllers listen for agents and for each other. */
export interface ControllerAddresses {
  /** host:port of each controller that accepts agents. */
  readonly all: readonly string[];
  /** host:port of every other controller that listens, including draining ones. */
  readonly others: readonly string[];
  /** host:port of one controller, for forwarded calls; undefined if it is absent or does not listen yet. */
  of(controllerId: string): string | undefined;
  close(): void;
}

/** `onArrival` is called when another controller starts to listen. */
export function createControllerAddresses(
  registry: Pick<ControllerRegistry, "id" | "controllers" | "controller" | "subscribe">,
  onArrival: () => void,
): ControllerAddresses {
  let addresses = addressesOf(registry);
  const watch = registry.subscribe(() => {
    const before = addresses;
    addresses = addressesOf(registry);
    if (addresses.some((address) => !before.includes(address))) onArrival();
  });
  return {
    get all() {
      return addresses;
    },
    get others() {
      const listening = registry.controllers().filter(({ id, address }) => id !== registry.id && address !== "");
      return listening.map(({ address }) => address);
    },
    of: (controllerId) => registry.controller(controllerId)?.address || undefined,
    close: watch.close,
  };
}

/** Addresses of controllers that listen and are not draining. */
export function addressesOf(registry: Pick<ControllerRegistry, "controllers">): string[] {
  const accepting = registry.controllers().filter(({ address, draining }) => address !== "" && !draining);
  return [...new Set(accepting.map(({ address }) => address))];
}
