import type { Parameter } from "./parameter.ts";
import { postgresqlExtensions } from "./postgresql-extensions.ts";
import { postgresqlManaged, postgresqlParameters } from "./postgresql-parameters.ts";
import { valkeyManaged, valkeyParameters } from "./valkey-parameters.ts";

/** Values of database_type that there are. */
export type Engine = "postgresql" | "valkey";

/** What is known of one engine without asking it: versions, port, what its users may set and create. */
export interface EngineFacts {
  /** Value of database_type. */
  readonly engine: Engine;
  readonly title: string;
  readonly port: number;
  /** Newest last. */
  readonly versions: readonly string[];
  readonly defaultVersion: string;
  readonly parameters: readonly Parameter[];
  /** Names that exist but belong to the platform. */
  readonly managedParameters: readonly RegExp[];
  /** Extensions that the default user may create; empty where the engine has none. */
  readonly extensions: readonly string[];
  /** True when databases inside it can be listed and made. */
  readonly hasDatabases: boolean;
  /** True when there can be queues in these. */
  readonly hasQueues: boolean;
  /** True when it counts what its queries cost, and tells which run. */
  readonly hasQueryStatistics: boolean;
  /** True when the query console can hold a statement to reading. */
  readonly hasQueryConsole: boolean;
  /** True when machines with it are made ahead of demand. */
  readonly isMadeAhead: boolean;
  /** True when a newer version of it runs on the data of an older one as they are. */
  readonly upgradesInPlace: boolean;
  /** Undefined for an engine without backups. */
  readonly backups?: EngineBackups;
  /** Undefined for an engine without a pooler. */
  readonly pooler?: EnginePooler;
}

/** What lets many clients share few sessions of an engine. */
export interface EnginePooler {
  readonly port: number;
  /** For how long a client has a session for itself; the first is the default. */
  readonly modes: readonly PoolerMode[];
}

export type PoolerMode = "transaction" | "session";

/** What backups of an engine are, and what can be restored out of them. */
export interface EngineBackups {
  /** What a base backup is called. */
  readonly kind: "full" | "snapshot";
  /** With a log of changes any second of the window can be restored to, else only the moments of its backups. */
  readonly restorePoints: "any_second" | "snapshots";
  /** True when a backup can be only what changed since another one. */
  readonly increments: boolean;
  readonly fork: boolean;
}

export const engineCatalog: readonly EngineFacts[] = [
  {
    engine: "postgresql",
    title: "PostgreSQL",
    port: 5432,
    versions: ["17", "18"],
    defaultVersion: "17",
    parameters: postgresqlParameters,
    managedParameters: postgresqlManaged,
    extensions: postgresqlExtensions,
    hasDatabases: true,
    hasQueues: true,
    hasQueryStatistics: true,
    hasQueryConsole: true,
    isMadeAhead: true,
    upgradesInPlace: false,
    backups: { kind: "full", restorePoints: "any_second", increments: true, fork: true },
    pooler: { port: 5433, modes: ["transaction", "session"] },
  },
  {
    engine: "valkey",
    title: "Valkey",
    port: 6379,
    versions: ["8.1", "9"],
    defaultVersion: "8.1",
    parameters: valkeyParameters,
    managedParameters: valkeyManaged,
    extensions: [],
    hasDatabases: false,
    hasQueues: false,
    hasQueryStatistics: false,
    hasQueryConsole: false,
    isMadeAhead: false,
    upgradesInPlace: true,
    backups: { kind: "snapshot", restorePoints: "snapshots", increments: false, fork: true },
  },
];

/** Undefined for an engine that is not in the catalog. */
export function engineOf(engine: string): EngineFacts | undefined {
  return engineCatalog.find((facts) => facts.engine === engine);
}

/** Does a newer version of the engine read only data that are made anew out of those of the older one? False for an unknown engine. */
export function upgradesData(engine: string): boolean {
  return engineOf(engine)?.upgradesInPlace === false;
}

/** Parameters that a version of an engine has, by name; empty for an unknown engine. */
export function parametersOf(engine: string, version: string): ReadonlyMap<string, Parameter> {
  const parameters = engineOf(engine)?.parameters ?? [];
  const had = parameters.filter(({ versions }) => versions.length === 0 || versions.includes(version));
  return new Map(had.map((parameter) => [parameter.name, parameter]));
}
