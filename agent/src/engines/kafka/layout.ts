import { createHash } from "node:crypto";
import { join } from "node:path";
import { kafkaPrivatePort } from "@holdfast/common/engine-catalog/kafka.ts";
import type { Instance, InstancePaths } from "../engine-driver.ts";
import { ownMember } from "../members.ts";

/** Prefix of all names of the platform: users, topics, groups and the subjects of its certificates. */
export const platform = "holdfast";

export type DataPath = { readonly paths: Pick<InstancePaths, "data"> };

/** Directory of everything that the engine has on the data disk. */
export const engineDirectory = ({ paths }: DataPath): string => join(paths.data, "kafka");
/** The engine's own log directory, which contains nothing else. */
export const logDirectory = (instance: DataPath): string => join(engineDirectory(instance), "logs");
/** Exists once the log directory is formatted. */
export const formattedFile = (instance: DataPath): string => join(logDirectory(instance), "meta.properties");
/** Marker file: the log directory contains restored topics and is formatted as a cluster of one broker. */
export const restoredFile = (instance: DataPath): string => join(engineDirectory(instance), "restored");
/** Certificates between the front, the agent and the broker: created here, and unknown to any other machine. */
export const certificatesDirectory = (instance: DataPath): string => join(engineDirectory(instance), "certificates");
/** A link to Java, which gives the process its name. */
export const serverProgram = (instance: DataPath): string => join(engineDirectory(instance), "kafka-server");
/** Settings of the metrics exporter, with the hash of its password. */
export const exporterFile = (instance: DataPath): string => join(engineDirectory(instance), "exporter.yaml");
/** Password of the metrics exporter: random, and never leaves this machine. */
export const secretFile = (instance: DataPath): string => join(engineDirectory(instance), "platform.secret");

/** The broker's settings among the rendered files. */
export const settingsName = "server.properties";
export const loggingName = "logging.properties";

export const privateSocket = ({ paths }: Pick<Instance, "paths">): string => join(paths.run, "private.sock");
export const listenerSocket = ({ paths }: Pick<Instance, "paths">): string => join(paths.run, "listener.sock");
export const certificateFile = ({ paths }: Pick<Instance, "paths">): string => join(paths.tls, "server.crt");
export const keyFile = ({ paths }: Pick<Instance, "paths">): string => join(paths.tls, "server.key");

export const javaProgram = (software: string): string => `${software}/lib/jvm/default-java/bin/java`;
export const jarDirectory = (software: string): string => `${software}/local/share/kafka`;
export const frontProgram = (software: string): string => `${software}/sbin/haproxy`;

/**
 * Ports of a member on its private address. Clients connect to the front, which alone, with the agent, has certificates
 * that the broker's ports accept.
 */
export function portsOf({ spec }: Pick<Instance, "spec">) {
  const { port } = spec;
  return {
    clients: port,
    privateClients: kafkaPrivatePort,
    /** The broker's ports behind the front. */
    public: port + 10_000,
    private: port + 10_001,
    plain: port + 10_005,
    brokers: port + 10_002,
    controllers: port + 10_003,
    exporter: port + 10_004,
  };
}

/** The engine's id of this member. */
export function ownNumber(instance: Pick<Instance, "spec">): number {
  return ownMember(instance)?.number ?? 1;
}

/** The engine's id of the cluster. */
export function clusterIdOf({ spec }: Pick<Instance, "spec">): string {
  return uuidOf(spec.peers?.clusterId ?? spec.serviceId);
}

/** A UUID in base64url whose first bit is 0, so that it does not begin with a dash. */
function uuidOf(text: string): string {
  const bytes = createHash("sha256").update(text).digest().subarray(0, 16);
  bytes.writeUInt8((bytes[0] ?? 0) & 0x7f);
  return bytes.toString("base64url");
}

/** Directory id of a first member: a UUID that each of them computes, so that all form the same cluster. */
export function firstDirectoryId({ spec }: Pick<Instance, "spec">, number: number): string {
  return uuidOf(`${spec.peers?.clusterId ?? spec.serviceId} ${number}`);
}

/** True for names of users that belong to the platform. */
export function isReserved(name: string): boolean {
  return name.startsWith(platform);
}

/** True for a name that users' topics and groups may have. */
export function isVisible(name: string): boolean {
  return !name.startsWith("__") && !isReserved(name);
}

/** The release that the image has. */
export const kafkaVersion = "3.9.2";
