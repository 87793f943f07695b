import type { Membership } from "./membership.ts";

/** Where the controllers listen for agents and for each other. */
export interface ControllerAddresses {
  /** host:port of each that takes agents. */
  readonly all: readonly string[];
  /** Of every other controller that listens, also while it drains. */
  readonly others: readonly string[];
  /** Of a controller that may only have calls passed to it; undefined when it is not there or does not listen yet. */
  of(controllerId: string): string | undefined;
  close(): void;
}

/** `onArrival` is called when a controller listens that did not before. */
export function createControllerAddresses(
  membership: Pick<Membership, "id" | "members" | "member" | "subscribe">,
  onArrival: () => void,
): ControllerAddresses {
  let known = addressesOf(membership);
  const watch = membership.subscribe(() => {
    const before = known;
    known = addressesOf(membership);
    if (known.some((address) => !before.includes(address))) onArrival();
  });
  return {
    get all() {
      return known;
    },
    get others() {
      const listening = membership.members().filter(({ id, address }) => id !== membership.id && address !== "");
      return listening.map(({ address }) => address);
    },
    of: (controllerId) => membership.member(controllerId)?.address || undefined,
    close: watch.close,
  };
}

/** Addresses of controllers that listen and are not draining. */
export function addressesOf(membership: Pick<Membership, "members">): string[] {
  const taking = membership.members().filter(({ address, draining }) => address !== "" && !draining);
  return [...new Set(taking.map(({ address }) => address))];
}
