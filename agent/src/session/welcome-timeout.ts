/** How long the welcome to a session is waited for, ms, before the agent hangs up and dials again. */
export interface WelcomeTimeout {
  readonly ms: number;
  welcomed(): void;
  /** An attempt without a welcome. Hanging up wastes the controller's handshake, so the next wait is longer. */
  failed(): void;
  /** A session ended whose controller had agents enough to need so long to welcome them all again. */
  lost(fleetReturnMs: number): void;
}

const firstMs = 5_000;
const longestMs = 40_000;
/** Agents whose controllers take connections and never answer must not wait longer than this on top. */
const longestFleetReturnMs = 60_000;

export function createWelcomeTimeout(): WelcomeTimeout {
  let ms = firstMs;
  return {
    get ms() {
      return ms;
    },
    welcomed() {
      ms = firstMs;
    },
    failed() {
      ms = Math.max(ms, Math.min(ms * 2, longestMs));
    },
    lost(fleetReturnMs) {
      ms = firstMs + Math.min(fleetReturnMs, longestFleetReturnMs);
    },
  };
}
