import { checkParameter } from "@holdfast/common/engine-catalog/check-parameter.ts";
import {
  computedDefaults,
  type EngineFacts,
  engineCatalog,
  familyOf,
  parametersOf,
  type ServiceFamily,
} from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { EngineBackups, EnginePooler, PlanSize } from "@holdfast/common/engine-catalog/engine-row.ts";
import type { Parameter } from "@holdfast/common/engine-catalog/parameter.ts";
import { type PlanExcess, planExcesses } from "@holdfast/common/engine-catalog/plan-limits.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { ImageFacts } from "@holdfast/compute/compute-provider.ts";

/** One engine that this installation offers: the versions that can run, and the check of its parameters. */
export interface EngineOffer {
  readonly databaseType: string;
  readonly family: ServiceFamily;
  readonly title: string;
  readonly port: number;
  /** Port where machines cannot listen on ports below 1024; absent if `port` is not below. */
  readonly unprivilegedPort?: number;
  readonly defaultVersion: string;
  readonly versions: readonly OfferedVersion[];
  readonly extensions: readonly string[];
  readonly features: readonly OfferedFeature[];
  /** Absent for an engine without backups. */
  readonly backups?: EngineBackups;
  /** Layouts of a service's databases, the default first; empty for an engine without. */
  readonly layoutModes: readonly string[];
  /** Collations of a service's texts, the default first; empty for an engine whose databases choose. */
  readonly serverCollations: readonly string[];
  /** Absent for an engine without a pooler. */
  readonly pooler?: EnginePooler;
  /** Checks a value: returns it in canonical format, or the reason of its refusal. */
  checkParameter(version: string, name: string, text: string): ParameterVerdict;
  /** Every parameter of a version with its default; null where the plan or the number of nodes decides. */
  parameters(version: string): readonly OfferedParameter[];
  /** Defaults that are derived from the plan and the number of nodes. */
  computedDefaults(plan: PlanSize, nodeCount: number): Readonly<Record<string, string>>;
  /** A sentence about the guarantee that a value gives up with this number of nodes; undefined for other values. */
  parameterWarning(name: string, value: string, nodeCount: number): string | undefined;
  /** The named parameters (`names`) that exceed the plan, given all parameters of the instance. */
  planExcesses(
    version: string,
    plan: PlanSize,
    parameters: Readonly<Record<string, string>>,
    names: readonly string[],
  ): readonly PlanExcess[];
}

export interface OfferedVersion {
  readonly version: string;
  readonly title: string;
  readonly available: boolean;
  /** Reason for an unavailable version. */
  readonly reason?: string;
}

/** A feature that needs plugins of operators. */
export interface OfferedFeature {
  readonly name: string;
  readonly description: string;
  readonly available: boolean;
  /** Reason for an unavailable feature. */
  readonly reason?: string;
}

export type ParameterVerdict =
  | { readonly ok: true; readonly value: string }
  | { readonly ok: false; readonly code: string; readonly detail: string };

export interface OfferedParameter {
  readonly name: string;
  readonly type: string;
  readonly description: string;
  readonly default: string | null;
  readonly minimum: string | null;
  readonly maximum: string | null;
  readonly values: readonly string[];
  readonly unit: string | null;
  readonly needsRestart: boolean;
  readonly versions: readonly string[];
}

/** Every engine that this release offers, with the versions that the compute provider can run. */
export function createEngineOffers(images: readonly ImageFacts[]): readonly EngineOffer[] {
  return engineCatalog.filter(({ isOffered }) => isOffered !== false).map((facts) => offerOf(facts, images));
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
    versions: versionsOf(facts, images),
    extensions: facts.extensions,
    features: featuresOf(facts, images),
    ...(facts.backups && { backups: facts.backups }),
    layoutModes: facts.layoutModes ?? [],
    serverCollations: facts.serverCollations ?? [],
    ...(facts.pooler && { pooler: facts.pooler }),
    checkParameter: (version, name, text) => checkParameter(engine, version, name, text),
    parameters: (version) => [...parametersOf(engine, version).values()].map(offered),
    computedDefaults: (plan, nodeCount) => computedDefaults(engine, plan, nodeCount),
    parameterWarning: (name, value, nodeCount) => facts.parameterWarning?.(name, value, nodeCount),
    planExcesses: (version, plan, parameters, names) => planExcesses(engine, version, plan, parameters, names),
  };
}

function versionsOf(facts: EngineFacts, images: readonly ImageFacts[]): OfferedVersion[] {
  const { engine, title, versionTitles, missingVersions = [] } = facts;
  const titleOf = (version: string) => lookUp(versionTitles ?? {}, version) ?? `${title} ${version}`;
  const supported = facts.versions.map((version): OfferedVersion => {
    const image = images.find((candidate) => candidate.engine === engine && candidate.version === version);
    const named = { version, title: titleOf(version) };
    if (image?.available === true) return { ...named, available: true };
    return { ...named, available: false, reason: image?.reason ?? "no node image has it" };
  });
  const missing = missingVersions.map(({ version, reason }) => ({
    version,
    title: titleOf(version),
    available: false,
    reason,
  }));
  return [...supported, ...missing];
}

/** Features of the default version, by the plugins that its images get. */
function featuresOf(facts: EngineFacts, images: readonly ImageFacts[]): OfferedFeature[] {
  const { engine, title, features = [], defaultVersion } = facts;
  const image = images.find((candidate) => candidate.engine === engine && candidate.version === defaultVersion);
  return features.map(({ name, description, plugins }) => {
    const missing = plugins.filter((plugin) => image?.plugins?.includes(plugin) !== true);
    if (image?.available !== true)
      return { name, description, available: false, reason: image?.reason ?? "no node image has it" };
    if (missing.length === 0) return { name, description, available: true };
    const reason = `needs ${missing.join(" and ")}, which the operator adds to every host with ${title}`;
    return { name, description, available: false, reason };
  });
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
