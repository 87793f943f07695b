import { existsSync, readdirSync } from "node:fs";
import { runProgram } from "@holdfast/common/run-program.ts";

/** Name of a machine's link on the host, such as `hf77-12`; interface names have at most 15 characters. */
export function hostLink(addressBlock: string, number: number | ""): string {
  return `${prefixOf(addressBlock)}${number}`;
}

/**
 * Removes a link that outlived its machine. When a container's monitor is killed, nothing removes the link, and the
 * machine cannot start again.
 */
export async function removeLink(name: string): Promise<void> {
  if (!existsSync(`/sys/class/net/${name}`)) return;
  try {
    await runProgram("ip", ["link", "delete", name]);
  } catch (error) {
    // Another process removed it.
    if (existsSync(`/sys/class/net/${name}`)) throw error;
  }
}

/** Removes the links of all machines of a block; none may run. */
export async function removeLinks(addressBlock: string): Promise<void> {
  const prefix = prefixOf(addressBlock);
  for (const name of readdirSync("/sys/class/net")) if (name.startsWith(prefix)) await removeLink(name);
}

function prefixOf(addressBlock: string): string {
  return `hf${addressBlock.split(".")[1]}-`;
}
