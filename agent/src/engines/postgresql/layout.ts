import { dirname, join } from "node:path";
import { authOwner } from "@holdfast/common/auth-schema/names.ts";
import type { Instance, InstancePaths } from "../engine-driver.ts";
import { agentRole as queueAgent, queueGroup } from "./queue/schema/names.ts";

/** The platform's superuser and its database. Users can neither sign in as it nor connect to it. */
export const platform = "holdfast";

/** Roles of the platform's own sessions: its superuser, and the reader of the query console. */
export const consoleRole = "holdfast_console";
export const platformRoles = [platform, consoleRole] as const;
/** Role by which the pooler reads users' password verifiers through one function; it has no other privilege. */
export const poolerRole = `${platform}_pooler`;
/** Role that members sign in as by certificate: it streams WAL and reads files for pg_rewind. */
export const replicaRole = `${platform}_replica`;

/** Roles of programs that serve documents beside the engine: their writers, and their readers. */
export const documentRoles = { writers: `${platform}_documents`, readers: `${platform}_documents_reader` } as const;

/** Connections reserved for the platform (`superuser_reserved_connections`). */
export const reservedSlots = 5;
/**
 * Connections reserved for issuers (`reserved_connections`), so that users of an app can sign in if the app uses all
 * others.
 */
export const issuerSlots = 4;

/** Group roles of users of each kind. */
export const groups = {
  admin: "holdfast_admin",
  readwrite: "holdfast_readwrite",
  readonly: "holdfast_readonly",
} as const;

/** The platform's schemas inside users' databases, without privileges for the groups. */
export const platformSchemas = [platform, "_mdb_auth", "mdb_queue"] as const;

/** PGDATA: a directory on the data disk, not the disk itself. */
export function dataDirectory({ paths }: { readonly paths: Pick<InstancePaths, "data"> }): string {
  return join(paths.data, "postgresql");
}

/**
 * Copy of the server key that the engine's user owns, as PostgreSQL requires; in a directory that is lost at a restart
 * of the machine.
 */
export function ownKeyFile({ paths }: { readonly paths: Pick<InstancePaths, "run"> }): string {
  return join(paths.run, "server.key");
}

/** Copy of the server key for the pooler, which runs as the engine's user too. */
export function poolerKeyFile({ paths }: { readonly paths: Pick<InstancePaths, "run"> }): string {
  return join(paths.run, "pooler.key");
}

/** Path of PgBouncer in the image; some images lack it. */
export function poolerProgram({ paths }: { readonly paths: Pick<InstancePaths, "software"> }): string {
  return join(paths.software, "../../../sbin/pgbouncer");
}

/** Directory of the programs of a version. An image may have other versions than the one of the settings. */
export function programsOf(instance: Instance, version: string): string {
  return join(dirname(instance.paths.software), version, "bin");
}

/** Path of one of PostgreSQL's programs. */
export function program(instance: Instance, name: string): string {
  return join(instance.paths.software, "bin", name);
}

/** Pattern of the complete names of the platform's roles, the same in JavaScript and in PostgreSQL. */
export const platformRolePattern = `^(?:${[
  ...platformRoles,
  poolerRole,
  ...Object.values(groups),
  ...Object.values(documentRoles),
  replicaRole,
  authOwner,
  // Roles of apps (`authRoleOf`).
  `${platform}_auth_[0-9a-f]{16}`,
  queueGroup,
  queueAgent,
].join("|")})$`;
const platformRole = new RegExp(platformRolePattern);

/** True for role names that belong to the platform or the engine; they are neither created nor dropped. */
export function isReserved(name: string): boolean {
  return platformRole.test(name) || name.startsWith("pg_") || name === "public" || name === "none";
}

/** True for the names of databases that belong to the platform or the engine. */
export function isReservedDatabase(name: string): boolean {
  return [platform, "template0", "template1"].includes(name);
}

/** True for names of roles and databases that only SQL creates, so that later ones of the platform are free. */
export function hasReservedPrefix(name: string): boolean {
  return name.startsWith(platform) || name.startsWith("pg_");
}
