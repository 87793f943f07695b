/** Wakes all waiters on a change. */
export interface Bell {
  ring(): void;
  /** Resolves at the next ring, or after the time. */
  wait(ms?: number): Promise<void>;
}

export function createBell(): Bell {
  const waiting = new Set<() => void>();
  return {
    ring() {
      for (const wake of waiting) wake();
    },
    wait: (ms) =>
      new Promise((resolve) => {
        const wake = () => {
          waiting.delete(wake);
          clearTimeout(timer);
          resolve();
        };
        const timer = ms === undefined ? undefined : setTimeout(wake, ms);
        waiting.add(wake);
      }),
  };
}
