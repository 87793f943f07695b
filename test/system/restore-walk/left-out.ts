import type { WalkFeature } from "./walk-step.ts";

/** What walks leave out until it is mended, each with the point of the issue that it waits for. */
const reasons: Readonly<Partial<Record<WalkFeature, string>>> = {};

export const leftOut: ReadonlySet<WalkFeature> = new Set(Object.keys(reasons) as WalkFeature[]);
