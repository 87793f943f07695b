import type { WalkFeature } from "./walk-step.ts";

/** What walks leave out until it is mended, each with the point of the issue that it waits for. */
const reasons: Readonly<Partial<Record<WalkFeature, string>>> = {
  "recovery-parameters": "point 1",
  plans: "point 1",
  "half-dropped-databases": "point 2",
  "databases-dropped-at-rest": "point 2",
  "moment-of-backups": "point 3",
  "session-timeouts": "point 4",
  "extreme-values": "point 4",
  undelete: "point 7",
  "window-at-rest": "point 8",
  "steps-in-order": "point 9",
};

export const leftOut: ReadonlySet<WalkFeature> = new Set(Object.keys(reasons) as WalkFeature[]);
