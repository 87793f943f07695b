import { lookup } from "node:dns/promises";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect, isIP } from "node:net";
import { runProgram } from "@holdfast/common/run-program.ts";
import type { HostPath, HostPaths, Neighbour } from "../compute-provider.ts";
import { deadEndMetric, planDeadEnds } from "./dead-ends.ts";
import { hostLink } from "./host-link.ts";
import { edgeTable } from "./machine-edge.ts";
import { nft } from "./nft.ts";
import { type KernelRoute, pathGuard, pathProtocol, planPaths, type Way } from "./path-plan.ts";

/** A host that answers does so at once; one that is merely slow is asked again soon. */
const answerWithinMs = 2_000;
/** Nobody listens there: a refusal is an answer. */
const closedPort = 1;

/** What an installation's paths on this machine stand on. */
interface PathPlace {
  /** Name of the guard's table. */
  readonly table: string;
  /** What the names of its machines' links begin with. */
  readonly links: string;
  /** Marks its routes among those of other installations. */
  readonly metric: number;
  /** The same of those that lead nowhere. */
  readonly deadEndMetric: number;
}

/**
 * Sets a route to the machines of each neighbour that is on a network of this machine, takes back those that are not wanted any
 * more, and tells which neighbours' machines are not reached. Forwarding is switched on for the devices that they come from,
 * guarded so that nothing else is forwarded; where the machine forwards anyway it is left as it is. Whatever in `networks`, those of
 * this machine's own machines, is no machine's leads nowhere.
 */
export function createHostPaths(addressBlock: string, networks: readonly string[]): HostPaths {
  const place = placeOf(addressBlock);
  return {
    async keep(neighbours, signal) {
      const ways = await Promise.all(neighbours.map((neighbour) => wayTo(neighbour, signal)));
      const routes = await ipRoutes(["show", "table", "main"], signal);
      const ends = planDeadEnds(networks, routes, place.deadEndMetric);
      for (const network of ends.add) await ip(["replace", ...deadEnd(network, place)], signal);
      for (const network of ends.remove) await ip(["delete", ...deadEnd(network, place)], signal);
      const plan = planPaths(ways, routes, place.metric);
      for (const { network, via, dev } of plan.add)
        await ip(["replace", network, "via", via, "dev", dev, ...markOf(place)], signal);
      for (const network of plan.remove) await ip(["delete", network, ...markOf(place)], signal);
      await forwardFrom(place, plan.devices, signal);
      return Promise.all(ways.map((way) => pathOf(way, plan.behind.get(way.neighbour.hostId), signal)));
    },
  };
}

/** Takes back all that was ever kept for the machines of the block. */
export async function removePaths(addressBlock: string, signal: AbortSignal): Promise<void> {
  await createHostPaths(addressBlock, []).keep([], signal);
  // Also a guard that was left without devices.
  const { table, links } = placeOf(addressBlock);
  await nft(pathGuard(table, links, []), signal);
}

function placeOf(addressBlock: string): PathPlace {
  const number = Number(addressBlock.split(".")[1]);
  return {
    table: `${edgeTable(addressBlock)}_paths`,
    links: hostLink(addressBlock, ""),
    metric: number,
    deadEndMetric: deadEndMetric(number),
  };
}

async function pathOf({ neighbour, route }: Way, gateway: string | undefined, signal: AbortSignal): Promise<HostPath> {
  const { hostId, network, address } = neighbour;
  if (gateway !== undefined)
    return {
      hostId,
      problem: `${network} has no route: ${hostId} (${address}) is behind ${gateway}, which needs one.`,
    };
  // Two hosts on one machine: the kernel knows both.
  const problem = route?.type === "local" ? undefined : await probe(network, signal);
  return {
    hostId,
    problem: problem === undefined ? "" : `${network} does not answer by way of ${address}: ${problem}.`,
  };
}

async function wayTo(neighbour: Neighbour, signal: AbortSignal): Promise<Way> {
  try {
    const { address } = isIP(neighbour.address) ? neighbour : await lookup(neighbour.address, 4);
    const [route] = await ipRoutes(["get", address], signal);
    return { neighbour: { ...neighbour, address }, route };
  } catch (error) {
    if (signal.aborted) throw error;
    return { neighbour, route: undefined };
  }
}

/** Switched on for a device where it is off, and off again where it was switched on here and is not wanted any more. */
async function forwardFrom(place: PathPlace, devices: readonly string[], signal: AbortSignal): Promise<void> {
  const before = await guarded(place.table, signal);
  const forwardsAll = readFileSync("/proc/sys/net/ipv4/ip_forward", "utf8").trim() === "1";
  const switched = forwardsAll ? [] : devices.filter((device) => before.includes(device) || !isForwarding(device));
  // The guard is there before anything is let through.
  if (switched.join() !== before.join()) await nft(pathGuard(place.table, place.links, switched), signal);
  for (const device of switched) writeForwarding(device, "1");
  if (!forwardsAll) for (const device of before) if (!switched.includes(device)) writeForwarding(device, "0");
}

/** Devices that the guard names; none where there is no guard. */
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

/** A device that is gone forwards nothing. */
function writeForwarding(device: string, value: "0" | "1"): void {
  if (readdirSync("/proc/sys/net/ipv4/conf").includes(device)) writeFileSync(forwardingOf(device), value);
}

function forwardingOf(device: string): string {
  return `/proc/sys/net/ipv4/conf/${device}/forwarding`;
}

/** What keeps the host's own address of a network from being reached; undefined when it answers, a refusal too. */
function probe(network: string, signal: AbortSignal): Promise<string | undefined> {
  const host = network.replace(/\.0\/16$/, ".1");
  return new Promise((resolve) => {
    const socket = connect({ host, port: closedPort, timeout: answerWithinMs, signal });
    const end = (problem: string | undefined) => {
      socket.destroy();
      resolve(problem);
    };
    socket.once("connect", () => end(undefined));
    socket.once("timeout", () => end("no answer"));
    socket.once("error", ({ code }: NodeJS.ErrnoException) => end(code === "ECONNREFUSED" ? undefined : code));
  });
}

function deadEnd(network: string, place: PathPlace): string[] {
  return ["unreachable", network, ...markOf({ metric: place.deadEndMetric })];
}

function markOf({ metric }: Pick<PathPlace, "metric">): string[] {
  return ["proto", pathProtocol, "metric", String(metric)];
}

async function ip(args: readonly string[], signal: AbortSignal): Promise<void> {
  await runProgram("ip", ["-4", "route", ...args], { signal });
}

async function ipRoutes(args: readonly string[], signal: AbortSignal): Promise<KernelRoute[]> {
  const { stdout } = await runProgram("ip", ["-4", "-json", "route", ...args], { signal });
  return stdout.trim() === "" ? [] : (JSON.parse(stdout) as KernelRoute[]);
}
