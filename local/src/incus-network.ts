import { removeLinks } from "@holdfast/compute/incus/host-link.ts";
import { removePaths } from "@holdfast/compute/incus/host-paths.ts";
import { edgeTable, removeEdge } from "@holdfast/compute/incus/machine-edge.ts";
import { removeHostAddress } from "./host-address.ts";

/** The host's own address in a block, by which its machines find it. */
export function ownAddressOf(addressBlock: string): string {
  return `${addressBlock}.0.1`;
}

/** Takes from the host what its network has for the machines of a block: links, routes, rules, its own address. None may run. */
export async function removeNetwork(addressBlock: string, signal: AbortSignal): Promise<void> {
  await removeLinks(addressBlock);
  await removePaths(addressBlock, signal);
  await removeEdge(edgeTable(addressBlock), signal);
  await removeHostAddress(ownAddressOf(addressBlock));
}
