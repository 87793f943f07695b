/** Callers who ask the same thing at about the same time share one answer to it. */
export interface SharedLooks<T> {
  /**
   * What `ask` answers, or answered to another caller at most `freshMs` ago; a failure is told to those who wait for it and
   * to nobody later. Rejects when the signal aborts; the look goes on for the others.
   */
  look(key: string, ask: () => Promise<T>, signal: AbortSignal): Promise<T>;
}

export function createSharedLooks<T>(freshMs: number): SharedLooks<T> {
  const looks = new Map<string, Promise<T>>();

  function begin(key: string, ask: () => Promise<T>): Promise<T> {
    const look = ask();
    const forget = () => {
      looks.delete(key);
    };
    looks.set(key, look);
    look.then(() => setTimeout(forget, freshMs).unref(), forget);
    return look;
  }

  return {
    async look(key, ask, signal) {
      signal.throwIfAborted();
      const left = Promise.withResolvers<never>();
      const leave = () => left.reject(signal.reason);
      signal.addEventListener("abort", leave, { once: true });
      try {
        return await Promise.race([looks.get(key) ?? begin(key, ask), left.promise]);
      } finally {
        signal.removeEventListener("abort", leave);
      }
    },
  };
}
