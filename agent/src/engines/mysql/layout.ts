import { join } from "node:path";
import type { Instance, InstancePaths } from "../engine-driver.ts";

/** The platform's account and database; names with this prefix are reserved. */
export const platform = "holdfast";

export type DataPath = { readonly paths: Pick<InstancePaths, "data"> };

/** Directory of everything that the engine has on the data disk. */
export const engineDirectory = ({ paths }: DataPath): string => join(paths.data, "mysql");
/** The engine's own data directory, which contains nothing else. */
export const dataDirectory = (instance: DataPath): string => join(engineDirectory(instance), "files");
/** Files of sorts and temporary tables. */
export const temporaryDirectory = (instance: DataPath): string => join(engineDirectory(instance), "temporary");
/** Password of the platform's account: random, created with the data directory, and never leaves this machine. */
export const secretFile = (instance: DataPath): string => join(engineDirectory(instance), "platform.secret");

/** The engine's option file among the rendered files. */
export const optionFile = ({ paths }: Pick<Instance, "paths">): string => join(paths.config, optionsName);
export const optionsName = "my.cnf";

export const engineSocket = ({ paths }: Instance): string => join(paths.run, "mysql.sock");
export const listenerSocket = ({ paths }: Instance): string => join(paths.run, "listener.sock");
export const processIdFile = ({ paths }: Instance): string => join(paths.run, "mysqld.pid");
export const serverProgram = (software: string): string => `${software}/sbin/mysqld`;
/** Path of HAProxy's executable beside the engine's. */
export const frontProgram = (software: string): string => `${software}/sbin/haproxy`;
export const certificateFile = ({ paths }: Pick<Instance, "paths">): string => join(paths.tls, "server.crt");
export const keyFile = ({ paths }: Pick<Instance, "paths">): string => join(paths.tls, "server.key");
export const authorityFile = ({ paths }: Pick<Instance, "paths">): string => join(paths.tls, "ca.crt");

/** Databases of the engine itself and of the platform. */
export const systemDatabases = ["mysql", "sys", "performance_schema", "information_schema", platform] as const;

/** True for account names that belong to the platform or the engine; they are neither created nor dropped. */
export function isReservedUser(name: string): boolean {
  return name.startsWith(platform) || name.startsWith("mysql.") || ["event_scheduler", ""].includes(name);
}

/** True for database names that belong to the platform or the engine, in any case of their letters. */
export function isReservedDatabase(name: string): boolean {
  const lower = name.toLowerCase();
  return lower.startsWith(platform) || systemDatabases.some((each) => each === lower) || lower === "";
}
