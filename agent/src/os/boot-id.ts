import { readFileSync } from "node:fs";

/** The kernel's boot with this start of the machine: another one after each start of either. */
export function bootIdOf(machineStart: string): string {
  return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()}/${machineStart}`;
}
