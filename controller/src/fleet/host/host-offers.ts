import { type CatalogData, catalogWith, defaultCatalog, withVirtualMachines } from "#catalog/catalog.ts";
import type { Offers } from "#catalog/catalog-api.ts";
import { createEngineOffers } from "#catalog/engine-offer.ts";
import { type ComputeProvider, type ImageFacts, unionOf } from "@holdfast/compute/compute-provider.ts";
import type { FleetSettings } from "../fleet-settings.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { HostObject } from "./host.ts";

export interface OffersDeps {
  readonly config: Pick<FleetSettings, "storageTiers" | "vmPlans" | "zone">;
  readonly provider: Pick<ComputeProvider, "images">;
  readonly hosts: Collection<HostObject>;
}

export async function createOffers({ config, provider, hosts }: OffersDeps, signal: AbortSignal): Promise<Offers> {
  const images = await provider.images(signal);
  const tiers = config.storageTiers.map((entry) => entry.split("=")[0] ?? "");
  return {
    catalog: catalogOf(withVirtualMachines(catalogWith(defaultCatalog, tiers), config.vmPlans), config.zone, hosts),
    engines: () => createEngineOffers(imagesOf(images, hosts)),
  };
}

type Hosts = Pick<Collection<HostObject>, "values">;

/**
 * The catalog with the zones of the current hosts, which are read at each access. `firstZone` is the default zone of
 * services.
 */
export function catalogOf(catalog: CatalogData, firstZone: string, hosts: Hosts): CatalogData {
  const titles = new Map(catalog.zones.map(({ zone, title }) => [zone, title]));
  return {
    ...catalog,
    get zones() {
      const zones = new Set(presentHosts(hosts).map(({ spec }) => spec.zone));
      const others = [...zones].filter((zone) => zone !== firstZone).sort();
      const inOrder = zones.has(firstZone) ? [firstZone, ...others] : others;
      return inOrder.map((zone) => ({ zone, title: titles.get(zone) ?? zone }));
    },
  };
}

/**
 * Images of the engine versions that at least one host has. `first`: images of the controllers' own provider, for
 * versions of which no host has reported.
 */
export function imagesOf(first: readonly ImageFacts[], hosts: Hosts): ImageFacts[] {
  const reported = presentHosts(hosts).flatMap(({ status }) => status.images);
  const isReported = ({ engine, version }: ImageFacts) =>
    reported.some((each) => each.engine === engine && each.version === version);
  return unionOf([...first.filter((each) => !isReported(each)), ...reported]);
}

function presentHosts(hosts: Hosts): HostObject[] {
  return Iterator.from(hosts.values())
    .map(({ object }) => object)
    .filter(({ spec }) => spec.destroyedAt === null)
    .toArray();
}
