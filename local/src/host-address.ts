import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Gives the host an address that its machines reach it by; nothing happens when it has it. */
export async function addHostAddress(address: string): Promise<void> {
  await run("ip", ["address", "replace", `${address}/32`, "dev", "lo"]);
}

/** Takes the address back; nothing happens when it is gone. */
export async function removeHostAddress(address: string): Promise<void> {
  const { stdout } = await run("ip", ["-json", "address", "show", "dev", "lo", "to", `${address}/32`]);
  if (stdout.includes(`"${address}"`)) await run("ip", ["address", "delete", `${address}/32`, "dev", "lo"]);
}
