import { valkeyClients, valkeySizing } from "@holdfast/common/engine-catalog/valkey.ts";
import { effectiveParameters, planOf } from "../effective-parameters.ts";
import type { ConfigFile, Instance } from "../engine-driver.ts";
import { frontFiles } from "../front/front-config.ts";
import { frontOf } from "./front.ts";
import { aclFile, dataDirectory, engineSocket, platformDatabase } from "./layout.ts";
import { replicationSettings } from "./replication/peer-port.ts";

/** Connections of the platform, which bypass the front. */
const reservedClients = 32;

/**
 * Blocks writes: with less memory than any engine uses and no eviction, the engine refuses commands that need memory
 * and accepts DEL, UNLINK, EXPIRE and FLUSHALL. The user's own values apply again afterwards.
 */
const blocked = { maxmemory: "1", "maxmemory-policy": "noeviction" } as const;
/** User parameter that has another value while writes are blocked. */
export const blockingParameter = "maxmemory-policy";
/** True for the memory limit of an engine whose writes are blocked. */
export const isBlockingLimit = (maxmemory: string | undefined): boolean => maxmemory === blocked.maxmemory;

/** Starts the copy for a replica or backup without a delay; by default the engine waits 5 s for other replicas. */
export const copySettings: [string, string][] = [["repl-diskless-sync-delay", "0"]];

/**
 * Disables periodic snapshots: the append-only file contains all data, snapshots would need twice their space, and a
 * failed snapshot would block writes.
 */
export const snapshotsOffSettings: [string, string][] = [["save", ""]];

/** Catalog parameters that the engine is to run with. */
export function desiredParameters(instance: Instance): Map<string, string> {
  const values = effectiveParameters(instance);
  return instance.writesBlocked === true ? values.set(blockingParameter, blocked[blockingParameter]) : values;
}

/** Limit of the memory for data, in bytes. */
export function desiredMaxmemory({ spec, writesBlocked }: Instance): string {
  return writesBlocked === true ? blocked.maxmemory : String(valkeySizing.dataMemoryBytes(planOf(spec)));
}

/** `valkey.conf`, and the files of the front. */
export function render(instance: Instance): ConfigFile[] {
  return [{ name: "valkey.conf", content: settings(instance), mode: 0o640 }, ...frontFiles(frontOf(instance))];
}

function settings(instance: Instance): string {
  const { spec } = instance;
  const values = desiredParameters(instance);
  const fixed: [string, string][] = [
    // The socket is the only entry: HAProxy connects to it after TLS and the check of the address.
    ["port", "0"],
    ["unixsocket", engineSocket(instance)],
    ["unixsocketperm", "770"],
    ["aclfile", aclFile(instance)],
    ["dir", dataDirectory(instance)],
    ["databases", String(platformDatabase + 1)],
    ["maxmemory", desiredMaxmemory(instance)],
    ["maxclients", String(valkeyClients(planOf(spec)) + reservedClients)],
    ["appendonly", "yes"],
    ["aof-use-rdb-preamble", "yes"],
    ...snapshotsOffSettings,
    ["enable-protected-configs", "no"],
    ["enable-debug-command", "no"],
    ["enable-module-command", "no"],
    ["hide-user-data-from-log", "yes"],
    ["daemonize", "no"],
    ["loglevel", "notice"],
    ["logfile", ""],
    ...copySettings,
  ];
  for (const [name, value] of [...fixed, ...replicationSettings(instance)]) values.set(name, value);
  const lines = [...values]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name} ${quote(name, value)}`);
  return `# Written by the agent of ${spec.nodeId}: changes made here are lost.\n${lines.join("\n")}\n`;
}

/** Quotes a value, except for `replicaof`, whose value consists of two arguments. */
function quote(name: string, value: string): string {
  return name === "replicaof" ? value : `"${value.replaceAll(/[\\"]/g, "\\$&").replaceAll(/[\r\n\0]/g, " ")}"`;
}
