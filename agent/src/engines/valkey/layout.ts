import { join } from "node:path";
import type { Instance, InstancePaths } from "../engine-driver.ts";

/** The platform's user; names with this prefix are reserved. */
export const platform = "holdfast";

/** Users have databases 0 to 15; the platform's probe writes to this one. */
export const platformDatabase = 16;

type DataPath = { readonly paths: Pick<InstancePaths, "data"> };

export const dataDirectory = ({ paths }: DataPath): string => join(paths.data, "valkey");
/** Directory of the append-only file. */
export const appendDirectory = (instance: DataPath): string => join(dataDirectory(instance), "appendonlydir");
/** Base of the append-only file that a restore writes. */
export const baseFile = "appendonly.aof.1.base.rdb";
export const aclFile = (instance: DataPath): string => join(dataDirectory(instance), "users.acl");
/** Password of the platform's user: random, created with the data directory, and never leaves this machine. */
export const secretFile = (instance: DataPath): string => join(dataDirectory(instance), "platform.secret");
/** Marker: exists once the users of the first settings were created. */
export const usersCreatedFile = (instance: DataPath): string => join(dataDirectory(instance), "users.made");

export const engineSocket = ({ paths }: Instance): string => join(paths.run, "valkey.sock");
export const listenerSocket = ({ paths }: Instance): string => join(paths.run, "listener.sock");
/** Path of HAProxy's executable beside the engine's. */
export const frontProgram = (software: string): string => `${software}/sbin/haproxy`;
export const certificateFile = ({ paths }: Instance): string => join(paths.tls, "server.crt");
export const keyFile = ({ paths }: Instance): string => join(paths.tls, "server.key");

/** True for user names that belong to the platform or the engine; they are neither created nor dropped. */
export function isReserved(name: string): boolean {
  return name.startsWith(platform) || name === "default";
}
