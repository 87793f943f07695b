/**
 * Stored formats that a controller of the previous release cannot read. Each controller registers the formats that it
 * reads, and a format is written only if every live controller reads it: during a rolling upgrade the earlier format is
 * written.
 */
export const gatedFormats = [
  /** A secret that is sealed together with its destination (destined-secret.ts). */
  "destined-secret",
] as const;

export type GatedFormat = (typeof gatedFormats)[number];
