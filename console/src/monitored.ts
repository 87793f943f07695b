import type { Catalog } from "@holdfast/sdk/responses.ts";

type CatalogMetric = Catalog["metrics"][number];

/** A service, a files service or a hosted app: the owner of machines with metrics, logs and alert rules. */
export interface Monitored {
  readonly id: string;
  /** The engine, "files" for a files service, or "app". */
  readonly software: string;
}

/** Metrics of the owner's software that this installation samples, in the order of the catalog. */
export function metricsOf(catalog: Catalog | undefined, software: string): readonly CatalogMetric[] {
  return (catalog?.metrics ?? []).filter(
    ({ source, engines }) => source !== null && (engines.length === 0 || engines.includes(software)),
  );
}
