import { join } from "node:path";
import type { Instance, InstancePaths } from "../engine-driver.ts";

/** The platform's user; names that begin so are ours. */
export const platform = "holdfast";

/** Users have databases 0 to 15; the platform's probe writes in this one. */
export const platformDatabase = 16;

type DataPath = { readonly paths: Pick<InstancePaths, "data"> };

export const dataDirectory = ({ paths }: DataPath): string => join(paths.data, "valkey");
export const aclFile = (instance: DataPath): string => join(dataDirectory(instance), "users.acl");
/** Password of the platform's user: random, made with the data directory, known to this machine only. */
export const secretFile = (instance: DataPath): string => join(dataDirectory(instance), "platform.secret");
/** There once the users that the instance is made with are made. */
export const usersMadeFile = (instance: DataPath): string => join(dataDirectory(instance), "users.made");

export const engineSocket = ({ paths }: Instance): string => join(paths.run, "valkey.sock");
export const listenerSocket = ({ paths }: Instance): string => join(paths.run, "listener.sock");
export const allowListFile = ({ paths }: Instance): string => join(paths.config, "allowed.lst");
export const certificateFile = ({ paths }: Instance): string => join(paths.tls, "server.crt");
export const keyFile = ({ paths }: Instance): string => join(paths.tls, "server.key");

/** True for names that are the platform's or the engine's; no user is made or dropped by one. */
export function isReserved(name: string): boolean {
  return name.startsWith(platform) || name === "default";
}
