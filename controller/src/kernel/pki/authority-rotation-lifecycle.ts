import { defineMachine, type StateOf } from "@holdfast/common/machine.ts";

/**
 * States of the rotation from one certificate authority to the next. Spreading: both are trusted, the old one signs.
 * Renewing: both are trusted, the new one signs, and every certificate is issued again. Afterwards only the new one is
 * trusted.
 */
// biome-ignore format: a table, aligned so that it reads as one
export const authorityRotationLifecycle = defineMachine("authority-rotation", [
  // from        event          to           effect
  ["idle",       "started",     "spreading", "none"],
  ["spreading",  "trusted",     "renewing",  "newestSigns"],
  ["spreading",  "cancelled",   "idle",      "dropOthers"],
  ["renewing",   "renewed",     "idle",      "dropOthers"],
]);

export type AuthorityRotationState = StateOf<typeof authorityRotationLifecycle>;
