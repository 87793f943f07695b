import { readFileSync } from "node:fs";
import { uptime } from "node:os";

/** Milliseconds since the host started, including suspend (CLOCK_BOOTTIME): the clock of deadlines. */
export function bootMs(): number {
  return uptime() * 1000;
}

/** Identifies the current boot of the host; differs after each start. */
export function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}
