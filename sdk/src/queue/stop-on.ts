import type { WorkOptions } from "./queue-types.ts";

interface Process {
  on(name: string, listener: () => void): unknown;
  off(name: string, listener: () => void): unknown;
}

/** Calls `stop` at the caller's signal or one of the process; the answer takes the listeners away again. */
export function stopOnSignals({ signal, stopOn = ["SIGTERM"] }: WorkOptions, stop: () => void): () => void {
  const { process } = globalThis as { process?: Process };
  for (const name of stopOn) process?.on(name, stop);
  signal?.addEventListener("abort", stop, { once: true });
  if (signal?.aborted === true) stop();
  return () => {
    for (const name of stopOn) process?.off(name, stop);
    signal?.removeEventListener("abort", stop);
  };
}
