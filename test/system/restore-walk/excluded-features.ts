import type { WalkFeature } from "./walk-step.ts";

/** Features that walks exclude until they are fixed, each with the point. */
const reasons: Readonly<Partial<Record<WalkFeature, string>>> = {};

export const excludedFeatures: ReadonlySet<WalkFeature> = new Set(Object.keys(reasons) as WalkFeature[]);
