import { join } from "node:path";
import type { Instance, InstancePaths } from "../engine-driver.ts";

/** The platform's superuser and its database. Users can neither be it nor enter it; names that begin so are ours. */
export const platform = "holdfast";

/** Roles that users of each kind belong to. */
export const groups = {
  admin: "holdfast_admin",
  readwrite: "holdfast_readwrite",
  readonly: "holdfast_readonly",
} as const;

/** Schemas of the platform inside users' databases, out of the groups' reach. */
export const platformSchemas = [platform, "_mdb_auth", "mdb_queue"] as const;

/** PGDATA: a directory of the data disk, not the disk itself. */
export function dataDirectory({ paths }: { readonly paths: Pick<InstancePaths, "data"> }): string {
  return join(paths.data, "postgresql");
}

/** PostgreSQL takes no key that is not its own user's: a copy, where nothing outlives the machine's run. */
export function ownKeyFile({ paths }: { readonly paths: Pick<InstancePaths, "run"> }): string {
  return join(paths.run, "server.key");
}

/** Path of one of PostgreSQL's own programs. */
export function program(instance: Instance, name: string): string {
  return join(instance.paths.software, "bin", name);
}

/** True for names of roles that are the platform's or the engine's; no user is made or dropped by one. */
export function isReserved(name: string): boolean {
  return name.startsWith(platform) || name.startsWith("pg_") || name === "public" || name === "none";
}
