import { setTimeout as sleep } from "node:timers/promises";
import type { Instance } from "../engine-driver.ts";
import { EngineBusy } from "../engine-errors.ts";
import { withSession } from "./session.ts";

/** With the time until a script may be ended, and those that others sent meanwhile. */
const withinMs = 3_000;
const againMs = 50;

/**
 * Ends scripts and functions until the engine is free, or the one that runs has written: only the end of the engine ends that one,
 * and undoes what it wrote. Never throws.
 */
export async function endCommands(instance: Instance, signal: AbortSignal): Promise<void> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
  try {
    for (;;) {
      const isFree = await withSession(instance, bounded, (session) => session.call("PING")).then(
        () => true,
        (error: unknown) => {
          if (error instanceof EngineBusy) return false;
          throw error;
        },
      );
      if (isFree) return;
      const refusals = await withSession(
        instance,
        bounded,
        (session) =>
          Promise.all(
            ["SCRIPT", "FUNCTION"].map((kind) =>
              session.call(kind, "KILL").then(
                () => "",
                (error: Error) => error.message,
              ),
            ),
          ),
        { database: null },
      );
      if (refusals.some((words) => words.startsWith("UNKILLABLE"))) return;
      await sleep(againMs, undefined, { signal: bounded });
    }
  } catch {
    // The engine does not answer, or has ended.
  }
}
