import type { Log } from "./log.ts";

/** Starts work that nothing awaits. A failure is logged once under the name `work` and has no other effect. */
export function inBackground(log: Pick<Log, "error">, work: string, promise: Promise<unknown>): void {
  promise.catch((error: unknown) => log.error("background work failed", { work, error }));
}
