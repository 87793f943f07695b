import type { Parameter } from "./parameter.ts";
import { postgresqlExtensions } from "./postgresql-extensions.ts";
import { postgresqlManaged, postgresqlParameters } from "./postgresql-parameters.ts";
import { valkeyManaged, valkeyParameters } from "./valkey-parameters.ts";

/** Supported values of database_type. */
export type Engine = "postgresql" | "valkey";

/** Static facts about one engine: versions, port, parameters and features. */
export interface EngineFacts {
  /** Value of database_type. */
  readonly engine: Engine;
  readonly title: string;
  readonly port: number;
  /** Newest last. */
  readonly versions: readonly string[];
  readonly defaultVersion: string;
  readonly parameters: readonly Parameter[];
  /** Parameters that exist but are managed by the platform. */
  readonly managedParameters: readonly RegExp[];
  /** Extensions that the default user may create; empty if the engine has none. */
  readonly extensions: readonly string[];
  /** True if the engine has databases that can be listed and created. */
  readonly hasDatabases: boolean;
  /** True if its databases can contain queues. */
  readonly hasQueues: boolean;
  /** True if it records query statistics and lists running queries. */
  readonly hasQueryStatistics: boolean;
  /** True if the query console can enforce read-only statements. */
  readonly hasQueryConsole: boolean;
  /** True if machines with this engine are created ahead of demand, in the warm pool. */
  readonly hasWarmPool: boolean;
  /** True if a newer version runs on the data files of an older one without converting them. */
  readonly upgradesInPlace: boolean;
  /** Undefined for an engine without backups. */
  readonly backups?: EngineBackups;
  /** Undefined for an engine without a pooler. */
  readonly pooler?: EnginePooler;
}

/** Connection pooler of an engine. */
export interface EnginePooler {
  readonly port: number;
  /** Supported pooling modes; the first one is the default. */
  readonly modes: readonly PoolerMode[];
}

export type PoolerMode = "transaction" | "session";

/** Backup features of an engine. */
export interface EngineBackups {
  /** Kind of its base backups. */
  readonly kind: "full" | "snapshot";
  /** `any_second` needs an archived log; otherwise only the times of the backups can be restored. */
  readonly restorePoints: "any_second" | "snapshots";
  /** True if there are incremental backups. */
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
    hasWarmPool: true,
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
    hasWarmPool: false,
    upgradesInPlace: true,
    backups: { kind: "snapshot", restorePoints: "snapshots", increments: false, fork: true },
  },
];

/** The engine's facts; undefined if the catalog lacks it. */
export function engineOf(engine: string): EngineFacts | undefined {
  return engineCatalog.find((facts) => facts.engine === engine);
}

/** True if a newer version of the engine needs converted data. False for an unknown engine. */
export function upgradesData(engine: string): boolean {
  return engineOf(engine)?.upgradesInPlace === false;
}

/** Parameters of an engine's version by name; empty for an unknown engine. */
export function parametersOf(engine: string, version: string): ReadonlyMap<string, Parameter> {
  const parameters = engineOf(engine)?.parameters ?? [];
  const available = parameters.filter(({ versions }) => versions.length === 0 || versions.includes(version));
  return new Map(available.map((parameter) => [parameter.name, parameter]));
}
