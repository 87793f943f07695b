import { removeLinks } from "@holdfast/compute/incus/host-link.ts";
import { removeRoutes } from "@holdfast/compute/incus/host-routes.ts";
import { edgeTable, removeEdge } from "@holdfast/compute/incus/machine-edge.ts";
import { runProgram } from "@holdfast/common/run-program.ts";

/** The host's own address in a block, where its machines find it. */
export function ownAddressOf(addressBlock: string): string {
  return `${addressBlock}.0.1`;
}

/** Removes the block's links, routes, packet filter and host address. No machine may run. */
export async function removeNetwork(addressBlock: string, signal: AbortSignal): Promise<void> {
  await removeLinks(addressBlock);
  await removeRoutes(addressBlock, signal);
  await removeEdge(edgeTable(addressBlock), signal);
  await removeHostAddress(ownAddressOf(addressBlock));
}

/** Adds an address of the host for its machines; does nothing if it exists. */
export async function addHostAddress(address: string): Promise<void> {
  await runProgram("ip", ["address", "replace", `${address}/32`, "dev", "lo"]);
}

/** Removes the address; does nothing if it does not exist. */
export async function removeHostAddress(address: string): Promise<void> {
  const { stdout } = await runProgram("ip", ["-json", "address", "show", "dev", "lo", "to", `${address}/32`]);
  if (stdout.includes(`"${address}"`)) await runProgram("ip", ["address", "delete", `${address}/32`, "dev", "lo"]);
}
