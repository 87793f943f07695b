import { defineKind } from "@holdfast/controller/kernel/store/kind.ts";
import type { Resource } from "@holdfast/controller/kernel/store/resource.ts";

/** What the fixture system has: words that are engraved a moment after they were asked for. */
export type Plaque = Resource<PlaqueSpec, PlaqueStatus>;

export interface PlaqueSpec {
  readonly words: string;
}

export interface PlaqueStatus {
  /** Null until the reconciler was there. */
  readonly engraved: string | null;
}

export const plaqueKind = defineKind<Plaque>("plaque", {
  goesWithOrganization: true,
  quotas: [{ name: "plaques", words: "plaques", limit: 2 }],
});
