import type { Use } from "#kernel/assembly.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { System } from "#kernel/system.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import { createCatalogApi, defaultAllowedCidrsPart, offersPart } from "./catalog-api.ts";

/** The catalog: the engines, plans, storage tiers and zones that users can choose. */
export const catalogSystem = declareSystem({ name: "catalog", open: openCatalogSystem });

function openCatalogSystem(_: Kernel, use: Use): System {
  const defaultAllowedCidrs = use(defaultAllowedCidrsPart);
  return { name: "catalog", rpcs: [createCatalogApi({ ...use(offersPart), defaultAllowedCidrs })] };
}
