import { type CatalogData, catalogWith, defaultCatalog, withVirtualMachines } from "#catalog/catalog.ts";
import type { EngineOffer } from "#catalog/engine-offer.ts";
import { createEngineOffers } from "#catalog/engine-offers.ts";
import type { ComputeProvider } from "@holdfast/compute/compute-provider.ts";
import type { FleetSettings } from "../fleet-settings.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { HostObject } from "./host.ts";
import { catalogOf, imagesOf } from "./host-offers.ts";

export interface OffersDeps {
  readonly config: Pick<FleetSettings, "storageTiers" | "vmPlans" | "zone">;
  readonly provider: Pick<ComputeProvider, "images">;
  readonly hosts: Collection<HostObject>;
}

/** What users can order here: the catalog, and the engine versions that some host has. */
export interface Offers {
  readonly catalog: CatalogData;
  engines(): readonly EngineOffer[];
}

export async function createOffers({ config, provider, hosts }: OffersDeps, signal: AbortSignal): Promise<Offers> {
  const images = await provider.images(signal);
  const tiers = config.storageTiers.map((entry) => entry.split("=")[0] ?? "");
  return {
    catalog: catalogOf(withVirtualMachines(catalogWith(defaultCatalog, tiers), config.vmPlans), config.zone, hosts),
    engines: () => createEngineOffers(imagesOf(images, hosts)),
  };
}
