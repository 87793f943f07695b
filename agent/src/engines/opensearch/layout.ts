import { join } from "node:path";
import type { Instance, InstancePaths } from "../engine-driver.ts";
import { type CertificateFiles, certificateFilesIn } from "../member-certificates.ts";
import { membersOf, ownMember } from "../members.ts";

/** Prefix of all names of the platform: users, roles and the subjects of its certificates. */
export const platform = "holdfast";

type DataPath = { readonly paths: Pick<InstancePaths, "data"> };

/** The release that the image has. */
export const opensearchVersion = "2.19.4";

/** Directory of everything that the engine has on the data disk. */
export const engineDirectory = ({ paths }: DataPath): string => join(paths.data, "opensearch");
/** Indices and the state of the cluster. */
export const dataDirectory = (instance: DataPath): string => join(engineDirectory(instance), "data");
/** Repository of a snapshot while it is stored or restored, the only directory that the engine accepts for one. */
export const repositoryDirectory = (instance: DataPath): string => join(engineDirectory(instance), "repository");
/** Numbers of restored indices and shards, as JSON. */
export const restoredFile = (instance: DataPath): string => join(engineDirectory(instance), "restored.json");
export const temporaryDirectory = (instance: DataPath): string => join(engineDirectory(instance), "tmp");
/**
 * The engine's configuration directory, in which it creates its keystore and reads certificates. Its settings are links
 * to the rendered files.
 */
export const configDirectory = (instance: DataPath): string => join(engineDirectory(instance), "config");
/** The first contents of the security index. */
export const securityDirectory = (instance: DataPath): string => join(configDirectory(instance), "opensearch-security");
/**
 * Marker file of a member that forms the cluster at its first start, with the numbers of the first members in its name.
 * It is on the data disk alone: a member that lost its disk must not form a second cluster.
 */
export const formingFile = (instance: DataPath, numbers: readonly number[]): string =>
  join(engineDirectory(instance), `forming-${numbers.join("-")}`);
/** Numbers of the members that form the cluster, by the name of the marker file; undefined for another file. */
export const formingNumbers = (name: string): number[] | undefined =>
  /^forming-(\d+(?:-\d+)*)$/.exec(name)?.[1]?.split("-").map(Number);
/** A link to Java, which gives the process its name. */
export const serverProgram = (instance: DataPath): string => join(engineDirectory(instance), "opensearch-node");
/** Certificates between the front, the agent and the engine: created here, and unknown to any other machine. */
export const certificatesOf = (instance: DataPath): CertificateFiles =>
  certificateFilesIn(join(configDirectory(instance), "certificates"));

/** The engine's settings among the rendered files, and those of its log. */
export const settingsName = "opensearch.yml";
export const loggingName = "logging.properties";

export const listenerSocket = ({ paths }: Pick<Instance, "paths">): string => join(paths.run, "listener.sock");
export const certificateFile = ({ paths }: Pick<Instance, "paths">): string => join(paths.tls, "server.crt");
export const keyFile = ({ paths }: Pick<Instance, "paths">): string => join(paths.tls, "server.key");

export const javaProgram = (software: string): string => `${software}/lib/jvm/default-java/bin/java`;
export const homeDirectory = (software: string): string =>
  `${software}/local/share/opensearch/opensearch-${opensearchVersion}`;
/** Plugins of the image, among them those that the operator adds. */
export const pluginsDirectory = (software: string): string => join(homeDirectory(software), "plugins");
export const frontProgram = (software: string): string => `${software}/sbin/haproxy`;

/**
 * Ports of a member on its private address. Clients connect to the front, which alone, with the agent, has certificates
 * that the engine's own port accepts.
 */
export function portsOf({ spec }: Pick<Instance, "spec">) {
  return {
    clients: spec.port,
    /** The engine's port behind the front. */
    http: spec.port + 10_000,
    /** Members of the cluster. */
    transport: spec.port + 10_001,
    /** Files of a snapshot, for the agent of the member that stores it. */
    files: spec.port + 10_002,
  };
}

/** The engine's name of a member. */
export const nodeNameOf = (number: number): string => `node-${number}`;
/** Number of the member with this name; undefined for another name. */
export function numberOfNode(name: string): number | undefined {
  const digits = /^node-(\d+)$/.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

export function ownNumber(instance: Pick<Instance, "spec">): number {
  return ownMember(instance)?.number ?? 1;
}

/** Number of members; one for a service without a list of members. */
export function memberCountOf({ spec }: Pick<Instance, "spec">): number {
  return Math.max(membersOf(spec).length, 1);
}

/** Index of the platform, which users can neither read nor change. */
export const heartbeatIndex = `.${platform}-heartbeat`;
/** Index of the security plugin. */
export const securityIndex = ".opendistro_security";

/** True for names of users that belong to the platform. */
export function isReserved(name: string): boolean {
  return name.startsWith(platform);
}

/** True for an index of users. */
export function isVisible(name: string): boolean {
  return !name.startsWith(`.${platform}`) && !name.startsWith(securityIndex);
}
