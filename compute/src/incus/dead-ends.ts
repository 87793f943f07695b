import { type KernelRoute, pathProtocol } from "./path-plan.ts";

/**
 * An address of a machine's network that no machine has now must lead nowhere: else packets for it leave by the default route, and
 * where that router sends the network here they go round until they die. So each network has a route of type `unreachable`, which
 * tells senders at once. It harms nobody: a machine's own route is more specific, and any other route to the very same network,
 * such as that of a device that is on it, has a better metric than this one, the worst that there is but for its installation.
 */
export interface DeadEnds {
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

const worstMetrics = 0xffff_ff00;

/** Metric of the installation's dead ends, by its number on this host. */
export function deadEndMetric(number: number): number {
  return worstMetrics + number;
}

/** Pure: which dead ends to set and which to take back, so that these networks have one each. Routes of others are left alone. */
export function planDeadEnds(networks: readonly string[], routes: readonly KernelRoute[], metric: number): DeadEnds {
  const there = routes.filter((route) => isDeadEnd(route) && route.metric === metric).map(({ dst }) => dst);
  const wanted = networks.map((network) => network.replace(/\/32$/, ""));
  return {
    add: wanted.filter((network) => !there.includes(network)),
    remove: there.filter((network) => !wanted.includes(network)),
  };
}

/** Of whichever installation. */
function isDeadEnd({ type, protocol }: KernelRoute): boolean {
  return type === "unreachable" && protocol === pathProtocol;
}
