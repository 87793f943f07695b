/**
 * Forms of what is stored that older controllers do not read. Each controller registers those that it reads, and writes one once
 * every live controller reads it: during a rolling upgrade the earlier form is written.
 */
export const storedForms = [
  /** A secret that is sealed with its destination (destined-secret.ts). */
  "destined-secret",
] as const;

export type StoredForm = (typeof storedForms)[number];
