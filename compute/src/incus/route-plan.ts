import type { OtherHost } from "../compute-provider.ts";

/** One route of the kernel, in the format of `ip -json route`. */
export interface KernelRoute {
  readonly dst: string;
  readonly gateway?: string;
  readonly dev?: string;
  readonly protocol?: string;
  readonly metric?: number;
  /** Route type: `local` for an address of this machine, `unreachable` for a blackhole. */
  readonly type?: string;
}

/** The kernel's route to another host: its device, and a gateway if they share no network. */
export interface RouteToHost {
  readonly other: OtherHost;
  /** Undefined if there is no route. */
  readonly route: KernelRoute | undefined;
}

export interface RoutePlan {
  readonly add: readonly { readonly network: string; readonly via: string; readonly dev: string }[];
  readonly remove: readonly string[];
  /** Devices that packets of other hosts' machines come from. */
  readonly devices: readonly string[];
  /** Gateways by host id: hosts behind a gateway need a route there, which its operators must set. */
  readonly behind: ReadonlyMap<string, string>;
}

/** Routing protocol number of Holdfast's routes; the metric identifies the installation. */
export const routeProtocol = "146";

/**
 * The changes that route each host's machines by way of it, for hosts on a network of this machine. Other
 * routes remain, and count unless they are blackholes.
 */
export function planRoutes(
  routesToHosts: readonly RouteToHost[],
  routes: readonly KernelRoute[],
  metric: number,
): RoutePlan {
  const isOwn = (route: KernelRoute) => route.protocol === routeProtocol && route.metric === metric;
  const others = routes.filter((route) => !isOwn(route) && route.type !== "unreachable");
  const near = routesToHosts.flatMap(({ other, route }) => {
    // Both hosts are on this machine, so the kernel has the route.
    if (route?.dev === undefined || route.type === "local" || route.gateway !== undefined) return [];
    return [{ network: other.network, via: other.address, dev: route.dev }];
  });
  const desired = near.filter(({ network }) => !others.some(({ dst }) => dst === network));
  const isThere = (route: KernelRoute, { network, via, dev }: (typeof desired)[number]) =>
    route.dst === network && route.gateway === via && route.dev === dev;
  const existing = routes.filter(isOwn);
  return {
    add: desired.filter((each) => !existing.some((route) => isThere(route, each))),
    remove: existing.filter(({ dst }) => !desired.some(({ network }) => network === dst)).map(({ dst }) => dst),
    devices: [...new Set(near.map(({ dev }) => dev))].sort(),
    behind: new Map(
      routesToHosts.flatMap(({ other: { hostId, network }, route }) => {
        const gateway = route?.gateway;
        return gateway === undefined || others.some(({ dst }) => dst === network) ? [] : [[hostId, gateway] as const];
      }),
    ),
  };
}

/**
 * An nftables table that forwards only to and from this machine's own machines, on devices whose forwarding was
 * enabled for them.
 */
export function forwardingFilter(table: string, links: string, devices: readonly string[]): string {
  return [
    `add table inet ${table}`,
    `delete table inet ${table}`,
    ...(devices.length === 0
      ? []
      : [
          `table inet ${table} {`,
          "  chain forward {",
          "    type filter hook forward priority filter - 1; policy accept;",
          // One rule for each device instead of a set, which would be empty for packets during a replacement.
          ...devices.map((device) => `    iifname "${device}" oifname != "${links}*" drop`),
          "  }",
          "}",
        ]),
    "",
  ].join("\n");
}

/**
 * Blackhole routes for unused addresses of the machines' networks. Without them, packets for an unused address leave by
 * the default route, and loop if that router sends the network here. Each network has a route of type `unreachable`,
 * which rejects packets immediately. It does not affect other routes: the route of a machine is more specific, and any
 * other route to the same network has a better metric: this one has the worst metric of its installation.
 */
export interface BlackholeRoutes {
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

const worstMetrics = 0xffff_ff00;

/** Metric of an installation's blackhole routes, by its number on this host. */
export function blackholeMetric(number: number): number {
  return worstMetrics + number;
}

/** The blackhole routes to add and to remove, so that each network has one. Other routes remain. */
export function planBlackholeRoutes(
  networks: readonly string[],
  routes: readonly KernelRoute[],
  metric: number,
): BlackholeRoutes {
  const present = routes.filter((route) => isBlackhole(route) && route.metric === metric).map(({ dst }) => dst);
  const desired = networks.map((network) => network.replace(/\/32$/, ""));
  return {
    add: desired.filter((network) => !present.includes(network)),
    remove: present.filter((network) => !desired.includes(network)),
  };
}

/** True for a blackhole route of any installation. */
function isBlackhole({ type, protocol }: KernelRoute): boolean {
  return type === "unreachable" && protocol === routeProtocol;
}
