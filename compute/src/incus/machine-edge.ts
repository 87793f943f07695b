import { runProgram } from "@holdfast/common/run-program.ts";
import { ComputeFailure } from "../compute-failure.ts";
import type { MachineEdge } from "../compute-provider.ts";
import { addressOf } from "../local/machine-number.ts";
import { hostLink } from "./host-link.ts";
import { closedRuleset, type EdgeConfig, edgeRuleset } from "./edge-rules.ts";
import { nft, nftCommand } from "./nft.ts";

/** Number of the host's address in a block. */
export const hostNumber = 1;

/** Packet filter of the machines of a block, with these public networks. */
export function edgeConfig(
  addressBlock: string,
  publicNetworks: readonly string[],
  hostPorts: readonly number[],
): EdgeConfig {
  return {
    table: edgeTable(addressBlock),
    networks: [`${addressBlock}.0.0/16`, ...publicNetworks],
    links: hostLink(addressBlock, ""),
    hostAddress: addressOf(addressBlock, hostNumber),
    hostPorts,
  };
}

/** Name of an installation's nftables table, by its address block. */
export function edgeTable(addressBlock: string): string {
  return `holdfast_${addressBlock.split(".")[1]}`;
}

/** Packet filter of this host's machines, by nftables. */
export function createMachineEdge(config: EdgeConfig): MachineEdge {
  return {
    apply: (rules, signal) => nft(edgeRuleset(config, rules), signal),
  };
}

/**
 * Creates a table that denies everything unless a table exists, so that no machine runs unfiltered. It is one step, so
 * rules that are applied concurrently remain.
 */
export async function closeEdge(config: EdgeConfig, signal: AbortSignal): Promise<void> {
  try {
    await nft(closedRuleset(config), signal);
  } catch (error) {
    if (!(error instanceof ComputeFailure && error.message.includes("File exists"))) throw error;
  }
}

/** Removes the table, if it exists. */
export async function removeEdge(table: string, signal: AbortSignal): Promise<void> {
  await nft(`add table inet ${table}\ndelete table inet ${table}\n`, signal);
}

/** Removes the table that all Incus daemons of the host share, once it is empty; Incus does not remove it. */
export async function removeIncusTable(signal: AbortSignal): Promise<void> {
  const { stdout } = await runProgram("nft", ["list", "tables", "inet"], { signal });
  if (!stdout.split("\n").includes("table inet incus")) return;
  const table = await runProgram("nft", ["list", "table", "inet", "incus"], { signal });
  if (!table.stdout.includes("chain ")) await nftCommand(["delete", "table", "inet", "incus"], signal);
}
