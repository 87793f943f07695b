import type { Ownership } from "@holdfast/controller/kernel/runtime/ownership.ts";

/** Ownership of every key, for tests with one controller. */
export const soleOwner: Ownership = {
  owns: () => true,
  begin: () => ({ signal: new AbortController().signal, claim: undefined, end() {} }),
  subscribe: () => ({ close() {} }),
};
