import { watch } from "node:fs";

/** Changes of a directory's entries and of their contents. */
export interface DirectoryWatch {
  /**
   * Resolves at the first change since the watch began or since the last call resolved, or after the time: a change may
   * be missed. Rejects with the signal's reason.
   */
  changed(withinMs: number, signal: AbortSignal): Promise<void>;
  close(): void;
}

/**
 * Watches the entries whose name matches. Without a watch, such as at the limit of inotify instances or while the
 * directory is missing, `changed` resolves only after its time limit.
 */
export function watchDirectory(path: string, matches: (name: string) => boolean = () => true): DirectoryWatch {
  let hasChanged = false;
  let onChange: () => void = () => undefined;
  const stop = start(path, (name) => {
    if (name !== null && !matches(name)) return;
    hasChanged = true;
    onChange();
  });
  return {
    async changed(withinMs, signal) {
      const { promise, resolve } = Promise.withResolvers<void>();
      onChange = resolve;
      const timer = setTimeout(resolve, withinMs);
      const onAbort = () => resolve();
      signal.addEventListener("abort", onAbort, { once: true });
      if (hasChanged || signal.aborted) resolve();
      await promise;
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      hasChanged = false;
      signal.throwIfAborted();
    },
    close: stop,
  };
}

/** Returns a function that ends the watch. */
function start(path: string, onChange: (name: string | null) => void): () => void {
  try {
    const watcher = watch(path, (_, name) => onChange(name));
    watcher.on("error", () => undefined);
    return () => watcher.close();
  } catch {
    return () => undefined;
  }
}
