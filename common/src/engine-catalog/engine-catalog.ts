import type { EngineRow, PlanSize, Topology } from "./engine-row.ts";
import { files } from "./files.ts";
import type { Parameter } from "./parameter.ts";
import { kafka } from "./kafka.ts";
import { mongodb } from "./mongodb.ts";
import { mysql } from "./mysql.ts";
import { opensearch } from "./opensearch.ts";
import { postgresql } from "./postgresql.ts";
import { tsql } from "./tsql.ts";
import { valkey } from "./valkey.ts";

/** Engines in the order in which lists show them. */
// biome-ignore format: a line an engine, so that branches with different engines merge
const rows = {
  postgresql,
  mysql,
  valkey,
  tsql,
  kafka,
  mongodb,
  opensearch,
  files,
} satisfies Readonly<Record<string, EngineRow>>;

/** Supported values of database_type. */
export type Engine = keyof typeof rows;

export interface EngineFacts extends EngineRow {
  /** Value of database_type. */
  readonly engine: Engine;
}

export const engineCatalog: readonly EngineFacts[] = Object.entries(rows).map(([engine, row]) => ({
  engine: engine as Engine,
  ...row,
}));

/** Engines of managed databases that this release offers. */
export const databaseEngines: readonly EngineFacts[] = engineCatalog.filter(
  ({ family, isOffered }) => family === undefined && isOffered !== false,
);

/** The engine's facts; undefined if the catalog lacks it. */
export function engineOf(engine: string): EngineFacts | undefined {
  return engineCatalog.find((facts) => facts.engine === engine);
}

/** API of a service: managed databases, or files services. */
export type ServiceFamily = "databases" | "files";

/** Family of an engine's services; databases for an unknown engine. */
export function familyOf(engine: string): ServiceFamily {
  return engineOf(engine)?.family ?? "databases";
}

/** Engine of a name or alias, such as `postgresql` for `postgres`; returns any other string unchanged. */
export function engineNamed(name: string): string {
  return engineCatalog.find(({ aliases = [] }) => aliases.includes(name))?.engine ?? name;
}

/** Relation of the members of a service; for an unknown engine, the relation that most engines have. */
export function topologyOf(engine: string): Topology {
  return engineOf(engine)?.topology ?? "primary_replicas";
}

/** True if a newer version of the engine needs converted data. False for an unknown engine. */
export function upgradesData(engine: string): boolean {
  return engineOf(engine)?.upgradesInPlace === false;
}

/**
 * Port of the engine itself, at which its members also connect to each other; undefined for an unknown engine.
 * `clientPort`: port of the service for clients, the engine's usual one by default.
 */
export function enginePortOf(engine: string, clientPort?: number): number | undefined {
  const facts = engineOf(engine);
  return facts?.frontEnd?.enginePort ?? clientPort ?? facts?.port;
}

/** Parameters of an engine's version by name; empty for an unknown engine. */
export function parametersOf(engine: string, version: string): ReadonlyMap<string, Parameter> {
  const parameters = engineOf(engine)?.parameters ?? [];
  const available = parameters.filter(({ versions }) => versions.length === 0 || versions.includes(version));
  return new Map(available.map((parameter) => [parameter.name, parameter]));
}

/**
 * The defaults that a plan or the number of the service's nodes determines, as the engine prints them; none for an
 * unknown engine.
 */
export function computedDefaults(engine: string, plan: PlanSize, nodeCount: number): Readonly<Record<string, string>> {
  return { ...planParameters(engine, plan), ...engineOf(engine)?.nodeDefaults?.(nodeCount) };
}

/** The parameters that a plan determines, as the engine prints them; none for an unknown engine. */
export function planParameters(engine: string, plan: PlanSize): Readonly<Record<string, string>> {
  return engineOf(engine)?.sizing.parameters(plan) ?? {};
}
