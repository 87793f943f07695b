import { setTimeout as sleep } from "node:timers/promises";
import type { Instance } from "../engine-driver.ts";
import { EngineBusy } from "../engine-errors.ts";
import { withSession } from "./session.ts";

/** Time limit. Includes the time until a script may be killed, and scripts that other clients send during the wait. */
const withinMs = 3_000;
const retryMs = 50;

/**
 * Kills scripts and functions until the engine is free, or until the running one has written: only the engine's exit
 * ends such a script and undoes its writes. Never throws.
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
      if (refusals.some((reply) => reply.startsWith("UNKILLABLE"))) return;
      await sleep(retryMs, undefined, { signal: bounded });
    }
  } catch {
    // The engine does not respond, or has exited.
  }
}
