import type { Neighbour } from "../compute-provider.ts";

/** One route of the kernel, as `ip -json route` shows it. */
export interface KernelRoute {
  readonly dst: string;
  readonly gateway?: string;
  readonly dev?: string;
  readonly protocol?: string;
  readonly metric?: number;
  /** `local` for an address of this machine, `unreachable` for what is to lead nowhere. */
  readonly type?: string;
}

/** How this machine reaches another host: by which device, and by which gateway if they share no network. */
export interface Way {
  readonly neighbour: Neighbour;
  /** Undefined when there is no route to it at all. */
  readonly route: KernelRoute | undefined;
}

export interface PathPlan {
  readonly add: readonly { readonly network: string; readonly via: string; readonly dev: string }[];
  readonly remove: readonly string[];
  /** Devices that other hosts' machines come from. */
  readonly devices: readonly string[];
  /** Gateways that hosts are behind, by host: a route there is for those who run them. */
  readonly behind: ReadonlyMap<string, string>;
}

/** Number of the routes that are ours; the metric says of which installation. */
export const pathProtocol = "146";

/**
 * Pure: what to change so that the machines of each neighbour are reached by way of it, as far as it is on a network that this
 * machine is on itself. Routes of others are left alone, and count if they lead anywhere.
 */
export function planPaths(ways: readonly Way[], routes: readonly KernelRoute[], metric: number): PathPlan {
  const isOurs = (route: KernelRoute) => route.protocol === pathProtocol && route.metric === metric;
  const others = routes.filter((route) => !isOurs(route) && route.type !== "unreachable");
  const near = ways.flatMap(({ neighbour, route }) => {
    // Two hosts on one machine: the kernel knows both.
    if (route?.dev === undefined || route.type === "local" || route.gateway !== undefined) return [];
    return [{ network: neighbour.network, via: neighbour.address, dev: route.dev }];
  });
  const wanted = near.filter(({ network }) => !others.some(({ dst }) => dst === network));
  const isThere = (route: KernelRoute, { network, via, dev }: (typeof wanted)[number]) =>
    route.dst === network && route.gateway === via && route.dev === dev;
  const ours = routes.filter(isOurs);
  return {
    add: wanted.filter((each) => !ours.some((route) => isThere(route, each))),
    remove: ours.filter(({ dst }) => !wanted.some(({ network }) => network === dst)).map(({ dst }) => dst),
    devices: [...new Set(near.map(({ dev }) => dev))].sort(),
    behind: new Map(
      ways.flatMap(({ neighbour: { hostId, network }, route }) => {
        const gateway = route?.gateway;
        return gateway === undefined || others.some(({ dst }) => dst === network) ? [] : [[hostId, gateway] as const];
      }),
    ),
  };
}

/**
 * Pure: a table of nftables that keeps this machine from becoming a router for anything but its own machines, on devices whose
 * forwarding was switched on for these alone.
 */
export function pathGuard(table: string, links: string, devices: readonly string[]): string {
  return [
    `add table inet ${table}`,
    `delete table inet ${table}`,
    ...(devices.length === 0
      ? []
      : [
          `table inet ${table} {`,
          "  chain forward {",
          "    type filter hook forward priority filter - 1; policy accept;",
          // A rule for each, and no set of them: it would be empty to what is forwarded while this is replaced.
          ...devices.map((device) => `    iifname "${device}" oifname != "${links}*" drop`),
          "  }",
          "}",
        ]),
    "",
  ].join("\n");
}
