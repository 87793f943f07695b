import { BlockList, isIPv6 } from "node:net";
import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Instance, Listener } from "./engine-driver.ts";

/** Addresses that the engine listens on for clients, without duplicates, the private one first. */
export function addressesOf({ address, listeners }: Pick<InstanceSpec, "address" | "listeners">): string[] {
  const forClients = listeners.filter(({ audience }) => audience === "private" || audience === "public");
  return [...new Set([address, ...forClients.map((listener) => listener.address)])].filter((each) => each !== "");
}

/** Addresses of the instance with the service's port. */
export function listenersOf({ spec }: Pick<Instance, "spec">): Listener[] {
  return addressesOf(spec).map((address) => ({ address, port: spec.port }));
}

/** Builds a predicate over an allow-list of CIDRs: true for an address that one of them contains. */
export function createAllowedAddresses(cidrs: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [network = "", length = ""] = cidr.split("/");
    const family = isIPv6(network) ? "ipv6" : "ipv4";
    list.addSubnet(network, length === "" ? (family === "ipv6" ? 128 : 32) : Number(length), family);
  }
  return (address) => list.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}
