import { uptime } from "node:os";

/** Milliseconds since the host was started, suspend included: the clock that rights are counted by. */
export function bootMs(): number {
  return uptime() * 1000;
}
