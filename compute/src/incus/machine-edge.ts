import { runProgram } from "@holdfast/common/run-program.ts";
import { ComputeFailure } from "../compute-failure.ts";
import type { MachineEdge } from "../compute-provider.ts";
import { addressOf } from "../local/machine-number.ts";
import { hostLink } from "./host-link.ts";
import { closedRuleset, type EdgePlace, edgeRuleset } from "./edge-rules.ts";
import { nft, nftCommand } from "./nft.ts";

/** Number of the host's own address in a block. */
export const hostNumber = 1;

/** The edge of the machines of a block, some with addresses of these public networks as well. */
export function edgePlace(
  addressBlock: string,
  publicNetworks: readonly string[],
  hostPorts: readonly number[],
): EdgePlace {
  return {
    table: edgeTable(addressBlock),
    networks: [`${addressBlock}.0.0/16`, ...publicNetworks],
    links: hostLink(addressBlock, ""),
    hostAddress: addressOf(addressBlock, hostNumber),
    hostPorts,
  };
}

/** Table of an installation's rules, by the block of its addresses. */
export function edgeTable(addressBlock: string): string {
  return `holdfast_${addressBlock.split(".")[1]}`;
}

/** The edge of machines on this host: rules of nftables. */
export function createMachineEdge(place: EdgePlace): MachineEdge {
  return {
    apply: (rules, signal) => nft(edgeRuleset(place, rules), signal),
  };
}

/**
 * Denies everything if there are no rules yet, so that no machine is ever without. In one step: rules that come meanwhile stay.
 */
export async function closeEdge(place: EdgePlace, signal: AbortSignal): Promise<void> {
  try {
    await nft(closedRuleset(place), signal);
  } catch (error) {
    if (!(error instanceof ComputeFailure && error.message.includes("File exists"))) throw error;
  }
}

/** Nothing happens when the table is gone. */
export async function removeEdge(table: string, signal: AbortSignal): Promise<void> {
  await nft(`add table inet ${table}\ndelete table inet ${table}\n`, signal);
}

/** Incus leaves a table of its own, which all daemons of the host share. It goes when nothing is in it any more. */
export async function removeIncusTable(signal: AbortSignal): Promise<void> {
  const { stdout } = await runProgram("nft", ["list", "tables", "inet"], { signal });
  if (!stdout.split("\n").includes("table inet incus")) return;
  const table = await runProgram("nft", ["list", "table", "inet", "incus"], { signal });
  if (!table.stdout.includes("chain ")) await nftCommand(["delete", "table", "inet", "incus"], signal);
}
