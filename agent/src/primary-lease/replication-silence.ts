/** State of a ReplicationSilence as plain data, so that tests can enumerate it. */
export interface ReplicationSilenceState {
  latest: { readonly received: string; readonly sinceMs: number } | undefined;
}

/** Measures the time since a replica received a new record. The primary wrote that record before this period. */
export interface ReplicationSilence {
  /** Records the position that the replica has received, which changes with every new record. */
  record(received: string): void;
  /**
   * Milliseconds for which the received position has certainly not changed; 0 for any position but the one recorded
   * last.
   */
  unchangedMs(received: string): number;
}

export function createReplicationSilence(
  bootMs: () => number,
  state: ReplicationSilenceState = { latest: undefined },
): ReplicationSilence {
  return {
    record(received) {
      if (state.latest?.received !== received) state.latest = { received, sinceMs: bootMs() };
    },
    unchangedMs: (received) => (state.latest?.received === received ? bootMs() - state.latest.sinceMs : 0),
  };
}
