import { join } from "node:path";
import type { Instance, InstancePaths } from "../engine-driver.ts";

type DataPath = { readonly paths: Pick<InstancePaths, "data"> };

/** Root of the server: each directory in it is a bucket. The agent owns it, so the server itself creates none. */
export const rootDirectory = ({ paths }: DataPath): string => join(paths.data, "files");
/** The only bucket. */
export const bucketDirectory = (instance: Pick<Instance, "paths" | "spec">): string =>
  join(rootDirectory(instance), instance.spec.bucket);
/** Directory in the bucket with the server's temporary files and parts of uploads. */
export const temporaryDirectory = ".sgwtmp";
/** File that the agent writes to find out whether the disk accepts writes. */
export const probeFile = (instance: DataPath): string => join(rootDirectory(instance), ".probe");

/** The two servers. Each has the keys of one access alone, and the one for readers refuses all writes. */
export const servers = ["writers", "readers"] as const;
export type Server = (typeof servers)[number];

/** Directory of a server's keys among the rendered files. */
export const keysDirectory = ({ paths }: Pick<Instance, "paths">, server: Server): string => join(paths.config, server);
export const serverSocket = ({ paths }: Pick<Instance, "paths">, server: Server): string =>
  join(paths.run, `${server}.sock`);
/** Socket of a server's administration, which nothing connects to: otherwise it is a part of the S3 API. */
export const adminSocket = ({ paths }: Pick<Instance, "paths">, server: Server): string =>
  join(paths.run, `${server}-admin.sock`);
export const listenerSocket = ({ paths }: Pick<Instance, "paths">): string => join(paths.run, "listener.sock");

/**
 * Prefix of the host in requests that have the bucket in the host name: the service's public and private host names
 * both begin with the name of the bucket.
 */
export const hostPrefix = ({ bucket }: Pick<Instance["spec"], "bucket">): string => `${bucket}.${bucket}`;

export const serverProgram = (software: string): string => `${software}/local/bin/versitygw`;
export const frontProgram = (software: string): string => `${software}/sbin/haproxy`;
export const certificateFile = ({ paths }: Pick<Instance, "paths">): string => join(paths.tls, "server.crt");
export const keyFile = ({ paths }: Pick<Instance, "paths">): string => join(paths.tls, "server.key");

/** Path of a server's health endpoint. */
export const healthPath = "/.holdfast/health";
