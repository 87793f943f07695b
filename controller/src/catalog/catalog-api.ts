import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type ServedService, serve } from "@holdfast/common/call.ts";
import { metricCatalog } from "@holdfast/common/metric-catalog.ts";
import {
  type Catalog,
  type CatalogFilesSchema,
  CatalogSchema,
  CatalogService,
} from "@holdfast/proto/holdfast/v1/catalog_pb.ts";
import { definePart } from "#kernel/part.ts";
import type { CatalogData } from "./catalog.ts";
import type { EngineOffer, OfferedParameter } from "./engine-offer.ts";

/** The catalog of this installation, and the engine versions that at least one host has. */
export interface Offers {
  readonly catalog: CatalogData;
  engines(): readonly EngineOffer[];
}

export const offersPart = definePart<Offers>("offers");

export interface CatalogApiDeps extends Offers {
  readonly defaultAllowedCidrs: readonly string[];
}

/** Networks (CIDRs) that new services admit by default. */
export const defaultAllowedCidrsPart = definePart<readonly string[]>("default allow-list");

export function createCatalogApi(deps: CatalogApiDeps): ServedService {
  return serve(CatalogService, { getCatalog: async () => catalogMessage(deps) });
}

function catalogMessage({ catalog, engines, defaultAllowedCidrs }: CatalogApiDeps): Catalog {
  return create(CatalogSchema, {
    currency: catalog.currency,
    engines: engines()
      .filter(({ family }) => family === "databases")
      .map((engine) => ({
        databaseType: engine.databaseType,
        title: engine.title,
        port: engine.port,
        versions: engine.versions.map(({ version, title, available, reason }) => ({
          version,
          title,
          available,
          ...(reason === undefined ? {} : { reason }),
        })),
        defaultVersion: engine.defaultVersion,
        parameters: parametersOf(engine).map(parameterMessage),
        extensions: [...engine.extensions],
        features: engine.features.map(({ reason, ...feature }) => ({
          ...feature,
          ...(reason === undefined ? {} : { reason }),
        })),
        ...(engine.backups && { backups: { ...engine.backups } }),
        layoutModes: [...engine.layoutModes],
        serverCollations: [...engine.serverCollations],
        ...(engine.pooler && { pooler: { port: engine.pooler.port, modes: [...engine.pooler.modes] } }),
      })),
    plans: catalog.plans.map(({ planName, vcpu, memoryGb, kind, monthlyCents }) => ({
      planName,
      vcpu,
      memoryGb,
      kind,
      monthlyCost: monthlyCents / 100,
    })),
    storageTiers: catalog.storageTiers.map(({ storageTier, medium, use, monthlyCentsPerGb }) => ({
      storageTier,
      medium,
      use,
      monthlyCostPerGb: monthlyCentsPerGb / 100,
    })),
    zones: catalog.zones.map((zone) => ({ ...zone })),
    limits: { ...catalog.limits },
    defaultAllowedCidrs: [...defaultAllowedCidrs],
    files: filesOf(engines()),
    metrics: metricCatalog.map(({ name, unit, engines: having, kind, description, source }) => ({
      name,
      unit,
      engines: [...having],
      kind,
      meaning: description,
      ...(source === null ? {} : { source }),
    })),
  });
}

/** Availability of files services, which are not among the engines: their only engine is not chosen by users. */
function filesOf(engines: readonly EngineOffer[]): MessageInitShape<typeof CatalogFilesSchema> {
  const offered = engines.find(({ family }) => family === "files");
  const newest = offered?.versions.find(({ version }) => version === offered.defaultVersion);
  if (newest === undefined) return { available: false, reason: "This installation has no files services." };
  const { available, reason } = newest;
  return { available, ...(reason !== undefined && { reason }) };
}

/** The parameters of all versions, each once. */
function parametersOf(engine: EngineOffer): OfferedParameter[] {
  const byName = new Map<string, OfferedParameter>();
  for (const { version } of engine.versions) {
    for (const parameter of engine.parameters(version))
      byName.set(parameter.name, byName.get(parameter.name) ?? parameter);
  }
  return [...byName.values()];
}

function parameterMessage(parameter: OfferedParameter) {
  const { name, type, description, values, needsRestart, versions, minimum, maximum, unit } = parameter;
  return {
    name,
    type,
    description,
    needsRestart,
    values: [...values],
    versions: [...versions],
    ...(parameter.default === null ? {} : { default: parameter.default }),
    ...(minimum === null ? {} : { minimum }),
    ...(maximum === null ? {} : { maximum }),
    ...(unit === null ? {} : { unit }),
  };
}
