import { checkParameter } from "@holdfast/common/engine-catalog/check-parameter.ts";
import {
  engineCatalog,
  type EngineFacts,
  familyOf,
  parametersOf,
  planParameters,
} from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { Parameter } from "@holdfast/common/engine-catalog/parameter.ts";
import { planExcesses } from "@holdfast/common/engine-catalog/plan-limits.ts";
import type { ImageFacts } from "@holdfast/compute/compute-provider.ts";
import type { EngineOffer, OfferedParameter } from "./engine-offer.ts";

/** Every supported engine, with the versions that the compute provider can run. */
export function createEngineOffers(images: readonly ImageFacts[]): readonly EngineOffer[] {
  return engineCatalog.map((facts) => offerOf(facts, images));
}

function offerOf(facts: EngineFacts, images: readonly ImageFacts[]): EngineOffer {
  const { engine } = facts;
  return {
    databaseType: engine,
    family: familyOf(engine),
    title: facts.title,
    port: facts.port,
    ...(facts.unprivilegedPort !== undefined && { unprivilegedPort: facts.unprivilegedPort }),
    defaultVersion: facts.defaultVersion,
    versions: facts.versions.map((version) => {
      const image = images.find((candidate) => candidate.engine === engine && candidate.version === version);
      if (image?.available === true) return { version, available: true };
      return { version, available: false, reason: image?.reason ?? "no node image has it" };
    }),
    extensions: facts.extensions,
    ...(facts.backups && { backups: facts.backups }),
    ...(facts.pooler && { pooler: facts.pooler }),
    checkParameter: (version, name, text) => checkParameter(engine, version, name, text),
    parameters: (version) => [...parametersOf(engine, version).values()].map(offered),
    planDefaults: (plan) => planParameters(engine, plan),
    planExcesses: (version, plan, parameters, names) => planExcesses(engine, version, plan, parameters, names),
  };
}

function offered(parameter: Parameter): OfferedParameter {
  const { name, type, description, values, unit, needsRestart, versions, minimum, maximum } = parameter;
  const limit = (number: number | null) => (number === null ? null : String(number));
  return {
    name,
    type,
    description,
    values,
    unit,
    needsRestart,
    versions,
    default: parameter.default,
    minimum: limit(minimum),
    maximum: limit(maximum),
  };
}
