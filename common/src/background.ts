import type { Log } from "./log.ts";

/** Starts work that nothing awaits. Its failure is one line of the log and ends nothing else; `work` names it there. */
export function inBackground(log: Pick<Log, "error">, work: string, promise: Promise<unknown>): void {
  promise.catch((error: unknown) => log.error("work in the background failed", { work, error }));
}
