import { runProgram } from "@holdfast/common/run-program.ts";

/** Gives the host an address that its machines reach it by; nothing happens when it has it. */
export async function addHostAddress(address: string): Promise<void> {
  await runProgram("ip", ["address", "replace", `${address}/32`, "dev", "lo"]);
}

/** Takes the address back; nothing happens when it is gone. */
export async function removeHostAddress(address: string): Promise<void> {
  const { stdout } = await runProgram("ip", ["-json", "address", "show", "dev", "lo", "to", `${address}/32`]);
  if (stdout.includes(`"${address}"`)) await runProgram("ip", ["address", "delete", `${address}/32`, "dev", "lo"]);
}
