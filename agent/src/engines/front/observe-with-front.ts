import { connectionsCheck } from "../connections-check.ts";
import type { EngineCheck, EngineObservation } from "../engine-driver.ts";
import type { Instance } from "../instance.ts";

/** An engine that did not answer. */
export const notObserved: EngineObservation = {
  responded: false,
  version: "",
  checks: [],
  pendingRestart: [],
  effectiveParameters: {},
  dataBytes: 0,
};

export const healthy = (name: string): EngineCheck => ({ name, status: "healthy", reason: "" });
export const notLive = (reason: string): EngineCheck => ({ name: "liveness", status: "unhealthy", reason });

interface ObservedParts {
  readonly withinMs: number;
  /** State of an engine that answers; its version is empty if it cannot serve. */
  readEngine(signal: AbortSignal): Promise<EngineObservation>;
  /** State of an engine whose reading failed; `late` is the check of one that did not answer in time. */
  failed(error: unknown, late: EngineCheck | undefined): Promise<EngineObservation>;
  /** Ends forbidden sessions of the front, and counts the others. */
  readFront(signal: AbortSignal): Promise<number>;
  readonly connectionLimit: number;
}

/**
 * Reads the state of an engine and of its front through new connections each time; a failed reading is a result. The
 * engine also counts as down if its front does not respond, since no client can connect.
 */
export async function observeWithFront(
  { spec }: Pick<Instance, "spec">,
  { withinMs, readEngine, failed, readFront, connectionLimit }: ObservedParts,
  signal: AbortSignal,
): Promise<EngineObservation> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
  const [engine, sessions] = await Promise.all([
    readEngine(bounded).catch((error: unknown) => {
      signal.throwIfAborted();
      return failed(
        error,
        bounded.aborted ? notLive(`The engine did not respond within ${withinMs / 1_000} s.`) : undefined,
      );
    }),
    readFront(bounded).catch(() => {
      signal.throwIfAborted();
      return undefined;
    }),
  ]);
  if (engine.version === "") return engine;
  if (sessions === undefined) return { ...engine, checks: [notLive("The front does not accept connections.")] };
  return { ...engine, checks: [...engine.checks, connectionsCheck(spec.engine, sessions, connectionLimit)] };
}
