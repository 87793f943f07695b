import { dirname, join } from "node:path";
import type { Instance, InstancePaths } from "../engine-driver.ts";

/** The platform's superuser and its database. Users can neither be it nor enter it; names that begin so are ours. */
export const platform = "holdfast";

/** Roles of the platform's own sessions: its superuser, and the one that reads for the query console. */
export const consoleRole = "holdfast_console";
export const platformRoles = [platform, consoleRole] as const;
/** Signs in for the pooler, and reads the secrets of users by one function; nothing else is its. */
export const poolerRole = `${platform}_pooler`;

/** Slots that only the platform can take, so that it gets in when users took all others. */
export const reservedSlots = 5;
/** Slots that users of apps can sign in by when their app took all others. */
export const issuerSlots = 4;

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

/** The same for the pooler, which runs as that user too. */
export function poolerKeyFile({ paths }: { readonly paths: Pick<InstancePaths, "run"> }): string {
  return join(paths.run, "pooler.key");
}

/** Path of the pooler in the image that the engine is in; most images have one. */
export function poolerProgram({ paths }: { readonly paths: Pick<InstancePaths, "software"> }): string {
  return join(paths.software, "../../../sbin/pgbouncer");
}

/** Directory of the programs of a version; an image may have those of another one than the settings name. */
export function programsOf(instance: Instance, version: string): string {
  return join(dirname(instance.paths.software), version, "bin");
}

/** Path of one of PostgreSQL's own programs. */
export function program(instance: Instance, name: string): string {
  return join(instance.paths.software, "bin", name);
}

/** True for names of roles that are the platform's or the engine's; no user is made or dropped by one. */
export function isReserved(name: string): boolean {
  return name.startsWith(platform) || name.startsWith("pg_") || name === "public" || name === "none";
}
