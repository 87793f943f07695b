import type { Ownership } from "./ownership.ts";

/** For a process that is alone, and for tests: every key is ours for ever. */
export const soleOwner: Ownership = {
  owns: () => true,
  begin: () => ({ signal: new AbortController().signal, claim: undefined, end() {} }),
  subscribe: () => ({ close() {} }),
};
