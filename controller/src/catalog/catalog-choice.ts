import type { FieldFault } from "@holdfast/common/errors.ts";
import { type CatalogData, planSizeOf } from "./catalog.ts";
import type { EngineOffer } from "./engine-offer.ts";
import { checkedParameters, planFaults } from "./parameter-choice.ts";

/** The catalog fields of a request for a service. */
export interface CatalogChoice {
  readonly databaseType: string;
  readonly version?: string | undefined;
  readonly planName: string;
  readonly storageSizeGb: number;
  readonly storageTier?: string | undefined;
  readonly zone?: string | undefined;
  readonly parameters: Readonly<Record<string, string>>;
}

/** The choice with the catalog's defaults for omitted fields. */
export interface Chosen {
  /** Undefined if the catalog does not have the engine. */
  readonly engine: EngineOffer | undefined;
  readonly version: string;
  readonly storageTier: string;
  readonly zone: string;
  /** In canonical format. */
  readonly parameters: Readonly<Record<string, string>>;
  /** One error for each field that is not in the catalog. Without errors the service can be created. */
  readonly faults: readonly FieldFault[];
}

/** Checks a request against the catalog. */
export function chooseFromCatalog(
  choice: CatalogChoice,
  catalog: CatalogData,
  engines: readonly EngineOffer[],
): Chosen {
  const faults: FieldFault[] = [];
  const fault = (field: string, code: string, detail: string) =>
    faults.push({ field, pointer: `/${field}`, code, detail });
  const requireOffered = (field: string, name: string, offered: readonly string[]) =>
    offered.includes(name) ||
    fault(
      field,
      "unknown",
      offered.length === 0 ? "has no value on this installation yet" : `must be one of ${offered.join(", ")}`,
    );

  const engine = engines.find(({ databaseType }) => databaseType === choice.databaseType);
  const version = choice.version ?? engine?.defaultVersion ?? "";
  const storageTier = choice.storageTier ?? catalog.storageTiers[0]?.storageTier ?? "";
  const zone = choice.zone ?? catalog.zones[0]?.zone ?? "";
  requireOffered(
    "database_type",
    choice.databaseType,
    engines.map(({ databaseType }) => databaseType),
  );
  requireOffered(
    "plan_name",
    choice.planName,
    catalog.plans.map(({ planName }) => planName),
  );
  requireOffered(
    "storage_tier",
    storageTier,
    catalog.storageTiers.map((tier) => tier.storageTier),
  );
  requireOffered(
    "zone",
    zone,
    catalog.zones.map((offered) => offered.zone),
  );
  const chosen = { engine, version, storageTier, zone };
  if (engine === undefined) return { ...chosen, parameters: {}, faults };

  requireOffered(
    "version",
    version,
    engine.versions.map((offered) => offered.version),
  );
  const offered = engine.versions.find((candidate) => candidate.version === version);
  // Without a known version there are no parameters to check.
  if (offered === undefined) return { ...chosen, parameters: {}, faults };
  if (!offered.available)
    fault("version", "unavailable", `cannot run here: ${offered.reason ?? "its image is missing"}`);
  const checked = checkedParameters(engine, version, choice.parameters);
  const { parameters } = checked;
  const plan = planSizeOf(catalog, choice.planName, choice.storageSizeGb);
  const excesses = plan === undefined ? [] : planFaults(engine, version, plan, parameters, Object.keys(parameters));
  return { ...chosen, parameters, faults: [...faults, ...checked.faults, ...excesses] };
}
