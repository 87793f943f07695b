import type { Kernel } from "#kernel/kernel.ts";
import type { System } from "#kernel/system.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import { type CatalogApiDeps, createCatalogApi } from "./catalog-api.ts";

interface CatalogSystemDeps {
  /** What the hosts of the installation can run. */
  readonly fleet: { readonly offers: Omit<CatalogApiDeps, "defaultAllowedCidrs"> };
  readonly defaultAllowedCidrs: CatalogApiDeps["defaultAllowedCidrs"];
}

/** What users can order here. */
export const catalogSystem = declareSystem({ name: "catalog", open: openCatalogSystem });

function openCatalogSystem(_: Kernel, { fleet, defaultAllowedCidrs }: CatalogSystemDeps): System {
  return { name: "catalog", rpcs: [createCatalogApi({ ...fleet.offers, defaultAllowedCidrs })] };
}
