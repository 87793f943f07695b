import type { Collection } from "./collection.ts";

/** Resolves true once `test` passes, tested again at each change of the object; false after timeoutMs or an abort. */
export async function whenChanged(
  collection: Collection<unknown>,
  id: string,
  test: () => boolean,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  if (test()) return true;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const subscription = collection.subscribe((changed) => {
    if (changed === id && test()) resolve(true);
  });
  const timer = setTimeout(() => resolve(false), timeoutMs);
  const onAbort = () => resolve(false);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
    subscription.close();
  }
}
