import { engineCatalog } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import type { MachineSpecObject } from "../machine/machine.ts";
import type { MachineKind } from "./waiting-plan.ts";

const gib = 1024 ** 3;

/** What a new service is likely to be. */
export function likelyMachines({ storageTiers }: CatalogData): Omit<MachineKind, "zone">[] {
  const storageTier = storageTiers[0]?.storageTier;
  if (storageTier === undefined) return [];
  return engineCatalog
    .filter(({ isMadeAhead }) => isMadeAhead)
    .map(({ engine, defaultVersion }) => ({ engine, version: defaultVersion, storageTier }));
}

/** The smallest that is sold: a machine can grow online, and not shrink. */
export function leastSize({
  plans,
  limits,
}: CatalogData): Pick<MachineSpecObject, "vcpu" | "memoryBytes" | "rootBytes" | "diskBytes"> {
  const [plan] = [...plans].sort((a, b) => a.memoryGb - b.memoryGb);
  if (plan === undefined) throw new Error("the catalog has no plans");
  const { vcpu, memoryGb, rootGb } = plan;
  const diskBytes = limits.storageSizeGbMin * gib;
  return { vcpu, memoryBytes: memoryGb * gib, rootBytes: rootGb * gib, diskBytes };
}
