/** What is known; plain data, so that what follows from it can be tried out. */
export interface QuietState {
  known: { readonly received: string; readonly sinceMs: number } | undefined;
}

/** For how long a replica has received nothing that it did not have: whoever wrote what it has did so before that. */
export interface Quiet {
  /** What it has received, now and then; never the same again once anything came. */
  note(received: string): void;
  /** Milliseconds for which it has certainly had no more than this; 0 for anything that was not noted last. */
  quietMs(received: string): number;
}

export function createQuiet(bootMs: () => number, state: QuietState = { known: undefined }): Quiet {
  return {
    note(received) {
      if (state.known?.received !== received) state.known = { received, sinceMs: bootMs() };
    },
    quietMs: (received) => (state.known?.received === received ? bootMs() - state.known.sinceMs : 0),
  };
}
