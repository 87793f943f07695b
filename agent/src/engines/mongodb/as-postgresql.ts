import type { Instance } from "../engine-driver.ts";
import { postgresqlVersion } from "./layout.ts";

/**
 * The instance as PostgreSQL's driver sees it: with the engine and version by which it finds its parameters. Databases
 * of clients are documents inside its default database.
 */
export function asPostgresql(instance: Instance): Instance {
  const { spec } = instance;
  return { ...instance, spec: { ...spec, engine: "postgresql", version: postgresqlVersion, databases: [] } };
}

/** A facet of PostgreSQL's driver. Its methods, and those of facets inside it, get the instance as PostgreSQL's. */
export function ofPostgresql<F extends object>(facet: F): F {
  const members = Object.entries(facet).map(([name, member]: [string, unknown]) => [name, adapted(member, facet)]);
  return Object.fromEntries(members) as F;
}

function adapted(member: unknown, facet: object): unknown {
  if (typeof member === "function")
    return (...args: unknown[]): unknown => Reflect.apply(member, facet, args.map(withEngine));
  return typeof member === "object" && member !== null && !Array.isArray(member) ? ofPostgresql(member) : member;
}

function withEngine(argument: unknown): unknown {
  return isInstance(argument) ? asPostgresql(argument) : argument;
}

function isInstance(argument: unknown): argument is Instance {
  return typeof argument === "object" && argument !== null && "spec" in argument && "paths" in argument;
}
