/**
 * Stored formats that older controllers cannot read. Each controller registers the formats that it reads, and one is
 * written only when every live controller reads it: during a rolling upgrade the earlier format is written.
 */
export const storedForms = [
  /** A secret that is sealed together with its destination (destined-secret.ts). */
  "destined-secret",
] as const;

export type StoredForm = (typeof storedForms)[number];
