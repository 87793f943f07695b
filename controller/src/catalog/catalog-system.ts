import type { Kernel } from "#kernel/kernel.ts";
import type { System } from "#kernel/system.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import { type CatalogApiDeps, createCatalogApi } from "./catalog-api.ts";

interface CatalogSystemDeps {
  /** The engines and versions that the hosts can run. */
  readonly fleet: { readonly offers: Omit<CatalogApiDeps, "defaultAllowedCidrs"> };
  readonly defaultAllowedCidrs: CatalogApiDeps["defaultAllowedCidrs"];
}

/** The catalog: what users can order here. */
export const catalogSystem = declareSystem({ name: "catalog", open: openCatalogSystem });

function openCatalogSystem(_: Kernel, { fleet, defaultAllowedCidrs }: CatalogSystemDeps): System {
  return { name: "catalog", rpcs: [createCatalogApi({ ...fleet.offers, defaultAllowedCidrs })] };
}
