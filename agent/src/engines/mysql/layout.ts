import { join } from "node:path";
import type { Instance, InstancePaths } from "../engine-driver.ts";

/** The platform's account and database. */
export const platform = "holdfast";

/** Account of members: it copies and replicates. It exists in the data, so every member has it. */
export const replicaUser = `${platform}_replica`;
/** Account by which a synchronous replica replicates, such as `holdfast_sync_2`. Each primary has its own. */
export const syncUser = (number: number): string => `${platform}_sync_${number}`;

/** Account of the query console. It may only select, from users' databases. */
export const consoleUser = `${platform}_console`;

interface PlatformAccount {
  /** Pattern of the complete name, the same in JavaScript and in MySQL. */
  readonly pattern: string;
  readonly host: string;
}

/** Accounts of the platform. All checks, lists and repairs of accounts use this table, never a prefix of a name. */
export const platformAccounts: readonly PlatformAccount[] = [
  { pattern: platform, host: "localhost" },
  { pattern: consoleUser, host: "localhost" },
  { pattern: replicaUser, host: "%" },
  { pattern: `${platform}_sync_[0-9]+`, host: "%" },
];
/** Accounts of the engine itself, locked and at `localhost`. */
export const engineAccounts = ["mysql.infoschema", "mysql.session", "mysql.sys"] as const;

export type DataPath = { readonly paths: Pick<InstancePaths, "data"> };

/** Directory of all files of the engine on the data disk. */
export const engineDirectory = ({ paths }: DataPath): string => join(paths.data, "mysql");
/** The engine's own data directory, which contains nothing else. */
export const dataDirectory = (instance: DataPath): string => join(engineDirectory(instance), "files");
/** Directory of the files of sorts and temporary tables. */
export const temporaryDirectory = (instance: DataPath): string => join(engineDirectory(instance), "temporary");
/** Password of the platform's account: random, created with the data directory, and never leaves this machine. */
export const secretFile = (instance: DataPath): string => join(engineDirectory(instance), "platform.secret");

/** Base path of the log of slow statements, outside of the engine's own directory, which a dump's load replaces. */
export const slowLogFile = (instance: DataPath): string => join(engineDirectory(instance), "slow.log");

/** The engine's option file among the rendered files. */
export const optionFile = ({ paths }: Pick<Instance, "paths">): string => join(paths.config, optionsName);
export const optionsName = "my.cnf";

export const engineSocket = ({ paths }: Instance): string => join(paths.run, "mysql.sock");
export const listenerSocket = ({ paths }: Instance): string => join(paths.run, "listener.sock");
export const peersSocket = ({ paths }: Instance): string => join(paths.run, "peers.sock");
export const poolerSocket = ({ paths }: Instance): string => join(paths.run, "pooler.sock");
/** Socket of the clients' front for connections that poolers forward. */
export const forwardedSocket = ({ paths }: Instance): string => join(paths.run, "forwarded.sock");
export const processIdFile = ({ paths }: Instance): string => join(paths.run, "mysqld.pid");
export const serverProgram = (software: string): string => `${software}/sbin/mysqld`;
/** Path of HAProxy's executable beside the engine's. */
export const frontProgram = (software: string): string => `${software}/sbin/haproxy`;
export const certificateFile = ({ paths }: Pick<Instance, "paths">): string => join(paths.tls, "server.crt");
export const keyFile = ({ paths }: Pick<Instance, "paths">): string => join(paths.tls, "server.key");
export const authorityFile = ({ paths }: Pick<Instance, "paths">): string => join(paths.tls, "ca.crt");

/** Databases of the engine itself and of the platform. */
export const systemDatabases = ["mysql", "sys", "performance_schema", "information_schema", platform] as const;

const platformUser = new RegExp(`^(?:${platformAccounts.map(({ pattern }) => pattern).join("|")})$`);
/** Names that the engine shows for sessions and threads without an account. */
export const engineThreads = ["event_scheduler", "system user", "unauthenticated user"] as const;
const engineUsers: readonly string[] = [...engineAccounts, ...engineThreads, ""];

/** True for account names that belong to the platform or the engine, at any host. */
export function isReservedUser(name: string): boolean {
  return platformUser.test(name) || engineUsers.includes(name);
}

/** True for database names that belong to the platform or the engine, in any case of their letters. */
export function isReservedDatabase(name: string): boolean {
  const lower = name.toLowerCase();
  return systemDatabases.some((each) => each === lower) || lower === "";
}

/** True for names of users and databases that only SQL creates, so that later ones of the platform are free. */
export function hasReservedPrefix(name: string): boolean {
  return name.toLowerCase().startsWith(platform) || name.startsWith("mysql.");
}
