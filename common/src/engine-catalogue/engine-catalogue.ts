import type { Parameter } from "./parameter.ts";
import { postgresqlExtensions } from "./postgresql-extensions.ts";
import { postgresqlManaged, postgresqlParameters } from "./postgresql-parameters.ts";
import { valkeyManaged, valkeyParameters } from "./valkey-parameters.ts";

/** What is known of one engine without asking it: versions, port, what its users may set and create. */
export interface EngineFacts {
  /** Value of database_type. */
  readonly engine: string;
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
}

export const engineCatalogue: readonly EngineFacts[] = [
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
  },
];

/** Undefined for an engine that is not in the catalogue. */
export function engineOf(engine: string): EngineFacts | undefined {
  return engineCatalogue.find((facts) => facts.engine === engine);
}

/** Parameters that a version of an engine has, by name; empty for an unknown engine. */
export function parametersOf(engine: string, version: string): ReadonlyMap<string, Parameter> {
  const parameters = engineOf(engine)?.parameters ?? [];
  const had = parameters.filter(({ versions }) => versions.length === 0 || versions.includes(version));
  return new Map(had.map((parameter) => [parameter.name, parameter]));
}
