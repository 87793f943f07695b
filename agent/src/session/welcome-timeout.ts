/** Time to wait for a session's welcome before the agent disconnects and dials again. */
export interface WelcomeTimeout {
  readonly ms: number;
  welcomed(): void;
  /** An attempt failed. Disconnecting wastes the controller's handshake, so the next wait is longer. */
  failed(): void;
  /** A session ended. Its controller's agents may need this time until all are welcomed elsewhere. */
  lost(fleetReturnMs: number): void;
}

const firstTimeoutMs = 5_000;
const maxTimeoutMs = 40_000;
/** Upper bound, for controllers that accept connections and never respond. */
const maxFleetReturnMs = 60_000;

export function createWelcomeTimeout(): WelcomeTimeout {
  let ms = firstTimeoutMs;
  return {
    get ms() {
      return ms;
    },
    welcomed() {
      ms = firstTimeoutMs;
    },
    failed() {
      ms = Math.max(ms, Math.min(ms * 2, maxTimeoutMs));
    },
    lost(fleetReturnMs) {
      ms = firstTimeoutMs + Math.min(fleetReturnMs, maxFleetReturnMs);
    },
  };
}
