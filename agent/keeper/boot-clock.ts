import { readFileSync } from "node:fs";
import { uptime } from "node:os";

/** Milliseconds since the host was started, suspend included: the clock that rights are counted by. */
export function bootMs(): number {
  return uptime() * 1000;
}

/** Another one after each start of the host. */
export function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}
