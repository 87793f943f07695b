import type { WorkOptions } from "./queue-types.ts";

interface Process {
  on(name: string, listener: () => void): unknown;
  off(name: string, listener: () => void): unknown;
}

interface SharedListener {
  readonly stops: Set<() => void>;
  remove(): void;
}

/** Workers by what stops them: an AbortSignal, or the name of a signal of the process, which belongs to all workers. */
const listeners = new Map<AbortSignal | string, SharedListener>();

/** Calls `stop` at the caller's signal or at a signal of the process; returns a function that ends that. */
export function stopOnSignals({ signal, stopOn = ["SIGTERM"] }: WorkOptions, stop: () => void): () => void {
  const sources = signal === undefined ? stopOn : [...stopOn, signal];
  for (const source of sources) {
    const shared = listeners.get(source) ?? listenTo(source);
    listeners.set(source, shared);
    shared.stops.add(stop);
  }
  if (signal?.aborted === true) stop();
  return () => {
    for (const source of sources) {
      const shared = listeners.get(source);
      if (shared?.stops.delete(stop) !== true || shared.stops.size > 0) continue;
      shared.remove();
      listeners.delete(source);
    }
  };
}

/** One listener for all workers: Node warns of a leak above ten listeners. */
function listenTo(source: AbortSignal | string): SharedListener {
  const stops = new Set<() => void>();
  const stopAll = () => {
    for (const stop of stops) stop();
  };
  if (typeof source !== "string") {
    source.addEventListener("abort", stopAll, { once: true });
    return { stops, remove: () => source.removeEventListener("abort", stopAll) };
  }
  const { process } = globalThis as { process?: Process };
  process?.on(source, stopAll);
  return { stops, remove: () => process?.off(source, stopAll) };
}
