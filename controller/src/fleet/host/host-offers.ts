import type { CatalogData } from "#catalog/catalog.ts";
import type { ImageFacts } from "@holdfast/compute/compute-provider.ts";
import { unionOf } from "@holdfast/compute/router/image-union.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { HostObject } from "./host.ts";

type Hosts = Pick<Collection<HostObject>, "values">;

/** The catalog with the zones that hosts are in, now and later; the first is a service's that names none. */
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

/** Engine versions that a host has, whichever; `first` as far as no host tells otherwise. */
export function imagesOf(first: readonly ImageFacts[], hosts: Hosts): ImageFacts[] {
  return unionOf([...first, ...presentHosts(hosts).flatMap(({ status }) => status.images)]);
}

function presentHosts(hosts: Hosts): HostObject[] {
  return Iterator.from(hosts.values())
    .map(({ object }) => object)
    .filter(({ spec }) => spec.destroyedAt === null)
    .toArray();
}
