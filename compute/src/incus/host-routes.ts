import { lookup } from "node:dns/promises";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect, isIP } from "node:net";
import { runProgram } from "@holdfast/common/run-program.ts";
import type { HostRoute, HostRoutes, OtherHost } from "../compute-provider.ts";
import {
  blackholeMetric,
  planBlackholeRoutes,
  type KernelRoute,
  forwardingFilter,
  routeProtocol,
  planRoutes,
  type RouteToHost,
} from "./route-plan.ts";
import { hostLink } from "./host-link.ts";
import { edgeTable } from "./machine-edge.ts";
import { nft } from "./nft.ts";

/** Time limit of a probe; the next `apply` probes again. */
const responseTimeoutMs = 2_000;
/** A port without a listener: a refusal proves that the host is reached. */
const closedPort = 1;

/** Fixed parts of an installation's routes on this machine. */
interface RouteConfig {
  /** Name of the guard's nftables table. */
  readonly table: string;
  /** Name prefix of its machines' links. */
  readonly links: string;
  /** Metric of its routes, which distinguishes them from other installations' routes. */
  readonly metric: number;
  /** Metric of its blackhole routes. */
  readonly blackholeMetric: number;
}

/**
 * Routes to the machines of other hosts. `apply` sets a route to each host that shares a network with this machine,
 * removes the other routes that it set, and reports the hosts whose machines do not respond. It enables forwarding on
 * the devices that their machines come from, and drops other packets from these devices; if forwarding was enabled
 * before, it changes nothing. The unused addresses of `networks`, the networks of this host's machines, get blackhole
 * routes.
 */
export function createHostRoutes(addressBlock: string, networks: readonly string[]): HostRoutes {
  const config = configOf(addressBlock);
  return {
    async apply(others, signal) {
      const routesToHosts = await Promise.all(others.map((other) => routeTo(other, signal)));
      const routes = await ipRoutes(["show", "table", "main"], signal);
      const blackholes = planBlackholeRoutes(networks, routes, config.blackholeMetric);
      for (const network of blackholes.add) await ip(["replace", ...blackholeRoute(network, config)], signal);
      for (const network of blackholes.remove) await ip(["delete", ...blackholeRoute(network, config)], signal);
      const plan = planRoutes(routesToHosts, routes, config.metric);
      for (const { network, via, dev } of plan.add)
        await ip(["replace", network, "via", via, "dev", dev, ...attributesOf(config)], signal);
      for (const network of plan.remove) await ip(["delete", network, ...attributesOf(config)], signal);
      await forwardFrom(config, plan.devices, signal);
      return Promise.all(
        routesToHosts.map((routeToHost) => stateOf(routeToHost, plan.behind.get(routeToHost.other.hostId), signal)),
      );
    },
  };
}

/** Removes all routes and guards of the block's machines. */
export async function removeRoutes(addressBlock: string, signal: AbortSignal): Promise<void> {
  await createHostRoutes(addressBlock, []).apply([], signal);
  // The guard may also exist without devices.
  const { table, links } = configOf(addressBlock);
  await nft(forwardingFilter(table, links, []), signal);
}

function configOf(addressBlock: string): RouteConfig {
  const number = Number(addressBlock.split(".")[1]);
  return {
    table: `${edgeTable(addressBlock)}_paths`,
    links: hostLink(addressBlock, ""),
    metric: number,
    blackholeMetric: blackholeMetric(number),
  };
}

async function stateOf(
  { other, route }: RouteToHost,
  gateway: string | undefined,
  signal: AbortSignal,
): Promise<HostRoute> {
  const { hostId, network, address } = other;
  if (gateway !== undefined)
    return {
      hostId,
      problem: `${network} has no route: ${hostId} (${address}) is behind ${gateway}, which needs one.`,
    };
  // Both hosts are on this machine, so the kernel has the route.
  const problem = route?.type === "local" ? undefined : await probe(network, signal);
  return {
    hostId,
    problem: problem === undefined ? "" : `${network} does not respond by way of ${address}: ${problem}.`,
  };
}

async function routeTo(other: OtherHost, signal: AbortSignal): Promise<RouteToHost> {
  try {
    const { address } = isIP(other.address) ? other : await lookup(other.address, 4);
    const [route] = await ipRoutes(["get", address], signal);
    return { other: { ...other, address }, route };
  } catch (error) {
    if (signal.aborted) throw error;
    return { other, route: undefined };
  }
}

/** Enables forwarding for the devices where it is off; disables it again for devices that are not needed any more. */
async function forwardFrom(config: RouteConfig, devices: readonly string[], signal: AbortSignal): Promise<void> {
  const before = await guarded(config.table, signal);
  const forwardsAll = readFileSync("/proc/sys/net/ipv4/ip_forward", "utf8").trim() === "1";
  const switched = forwardsAll ? [] : devices.filter((device) => before.includes(device) || !isForwarding(device));
  // The guard must exist before forwarding is enabled.
  if (switched.join() !== before.join()) await nft(forwardingFilter(config.table, config.links, switched), signal);
  for (const device of switched) writeForwarding(device, "1");
  if (!forwardsAll) for (const device of before) if (!switched.includes(device)) writeForwarding(device, "0");
}

/** Devices in the guard; empty if there is no guard. */
async function guarded(table: string, signal: AbortSignal): Promise<string[]> {
  try {
    const { stdout } = await runProgram("nft", ["list", "table", "inet", table], { signal });
    const [, names = ""] = /iifname (?:\{ )?([^}\n]*?)(?: \})? oifname/.exec(stdout) ?? [];
    return [...names.matchAll(/"([^"]+)"/g)].map(([, name = ""]) => name).sort();
  } catch (error) {
    if (signal.aborted) throw error;
    return [];
  }
}

function isForwarding(device: string): boolean {
  return readFileSync(forwardingOf(device), "utf8").trim() === "1";
}

/** Sets forwarding of a device; does nothing for an absent one. */
function writeForwarding(device: string, value: "0" | "1"): void {
  if (readdirSync("/proc/sys/net/ipv4/conf").includes(device)) writeFileSync(forwardingOf(device), value);
}

function forwardingOf(device: string): string {
  return `/proc/sys/net/ipv4/conf/${device}/forwarding`;
}

/** Reason why the other host's address in the network does not respond; undefined if it does, also by a refusal. */
function probe(network: string, signal: AbortSignal): Promise<string | undefined> {
  const host = network.replace(/\.0\/16$/, ".1");
  return new Promise((resolve) => {
    const socket = connect({ host, port: closedPort, timeout: responseTimeoutMs, signal });
    const end = (problem: string | undefined) => {
      socket.destroy();
      resolve(problem);
    };
    socket.once("connect", () => end(undefined));
    socket.once("timeout", () => end("no response"));
    socket.once("error", ({ code }: NodeJS.ErrnoException) => end(code === "ECONNREFUSED" ? undefined : code));
  });
}

function blackholeRoute(network: string, config: RouteConfig): string[] {
  return ["unreachable", network, ...attributesOf({ metric: config.blackholeMetric })];
}

function attributesOf({ metric }: Pick<RouteConfig, "metric">): string[] {
  return ["proto", routeProtocol, "metric", String(metric)];
}

async function ip(args: readonly string[], signal: AbortSignal): Promise<void> {
  await runProgram("ip", ["-4", "route", ...args], { signal });
}

async function ipRoutes(args: readonly string[], signal: AbortSignal): Promise<KernelRoute[]> {
  const { stdout } = await runProgram("ip", ["-4", "-json", "route", ...args], { signal });
  return stdout.trim() === "" ? [] : (JSON.parse(stdout) as KernelRoute[]);
}
