import { join } from "node:path";
import type { Instance } from "../../engine-driver.ts";
import { leaderOf, ownMember } from "../../members.ts";
import { certificateFile, keyFile, platform } from "../layout.ts";

/** The only user of the peer port. It may only replicate. */
export const replicaUser = `${platform}-replica`;

const prefix = `${platform}-member-`;

/** Peer port: other members connect to it on the private address, each with its certificate. */
export function peerPort({ spec }: Pick<Instance, "spec">): number {
  return spec.port + 10_000;
}

export const authorityFile = ({ paths }: Pick<Instance, "paths">): string => join(paths.tls, "ca.crt");

/**
 * Number of the member that announces this name, such as 2 for `holdfast-member-2`; undefined for other names.
 */
export function memberNumber(name: string): number | undefined {
  const digits = name.startsWith(prefix) ? name.slice(prefix.length) : "";
  return /^\d+$/.test(digits) ? Number(digits) : undefined;
}

/** Settings of a member in any role; a replica follows from its start. */
export function replicationSettings(instance: Instance): [string, string][] {
  const { replication } = instance.spec;
  if (replication === undefined) return [];
  const leader = leaderOf(instance);
  return [
    ["tls-replication", "yes"],
    ...certificateSettings(instance),
    ["masteruser", replicaUser],
    ["masterauth", replication.secret],
    ["replica-announce-ip", `${prefix}${ownMember(instance)?.number ?? 0}`],
    ["replica-announce-port", String(instance.spec.port)],
    ["replica-read-only", "yes"],
    ...liveSettings,
    ...(leader === undefined ? [] : [["replicaof", `${leader.address} ${peerPort(instance)}`] as [string, string]]),
  ];
}

/** The engine reads these files again whenever the settings are set. */
export function certificateSettings(instance: Instance): [string, string][] {
  return [
    ["tls-cert-file", certificateFile(instance)],
    ["tls-key-file", keyFile(instance)],
    ["tls-ca-cert-file", authorityFile(instance)],
  ];
}

/** Settings that a running primary applies when it gets its first replica. */
export const liveSettings: [string, string][] = [
  ["repl-timeout", "5"],
  ["repl-ping-replica-period", "1"],
];
