/**
 * Holds back what controllers asked for and this process read only after a pause of its own: by then the controller may
 * have given the stream up, and told whoever asked that nothing was done. The answer to a heartbeat that was sent since
 * shows that it has not. Without one, what is held back goes with the stream.
 */
export interface WakeGate {
  /** So much time passed unseen that the stream is in doubt until this heartbeat is answered. */
  doubt(heartbeat: bigint): void;
  /** Does it now, or in its turn once the stream is known to be good. */
  pass(action: () => void): void;
  answered(heartbeat: bigint): void;
}

export function createWakeGate(): WakeGate {
  let held: (() => void)[] = [];
  /** Undefined while nothing is in doubt. */
  let askedBy: bigint | undefined;

  return {
    doubt(heartbeat) {
      askedBy = heartbeat;
    },
    pass(action) {
      if (askedBy === undefined) action();
      else held.push(action);
    },
    answered(heartbeat) {
      if (askedBy === undefined || heartbeat < askedBy) return;
      askedBy = undefined;
      const waited = held;
      held = [];
      for (const action of waited) action();
    },
  };
}
