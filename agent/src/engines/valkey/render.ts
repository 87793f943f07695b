import { clientsOf, valkeyMaxmemoryBytes } from "@holdfast/common/engine-catalog/plan-parameters.ts";
import { effectiveParameters, planOf } from "../effective-parameters.ts";
import type { ConfigFile, Instance } from "../engine-driver.ts";
import { otherMembers } from "../members.ts";
import { aclFile, dataDirectory, engineSocket, platformDatabase } from "./layout.ts";
import { listenerConfig } from "./listener-config.ts";
import { replicationSettings } from "./replication/peer-way.ts";

/** Connections that only the platform makes, past the listener. */
const reservedClients = 32;

/**
 * With less memory than any engine uses, and nothing evicted for it, the engine refuses whatever needs more, and takes deletions:
 * DEL, UNLINK, EXPIRE, FLUSHALL. What users set of it is theirs again afterwards.
 */
const blocked = { maxmemory: "1", "maxmemory-policy": "noeviction" } as const;
/** Parameters of users that have another value while their writes are blocked. */
export const blockingParameter = "maxmemory-policy";
/** Is this what an engine with blocked writes has for a limit of its memory? */
export const isBlockingLimit = (maxmemory: string | undefined): boolean => maxmemory === blocked.maxmemory;

/** Whoever asks for all contents, a replica or a backup, gets them at once: the engine waits for more of them otherwise. */
export const copySettings: [string, string][] = [["repl-diskless-sync-delay", "0"]];

/** The append-only file has all data. A snapshot beside it would take as much again of the disk twice over, and writes be refused when it fails. */
export const noSnapshots: [string, string][] = [["save", ""]];

/** Pure: what the engine is to run with of the parameters in the catalog. */
export function wantedParameters(instance: Instance): Map<string, string> {
  const values = effectiveParameters(instance);
  return instance.writesBlocked === true ? values.set(blockingParameter, blocked[blockingParameter]) : values;
}

/** Pure: in bytes, the memory for data. */
export function wantedMaxmemory({ spec, writesBlocked }: Instance): string {
  return writesBlocked === true ? blocked.maxmemory : String(valkeyMaxmemoryBytes(planOf(spec)));
}

/** Pure: valkey.conf, the listener's configuration and its allow-list. */
export function render(instance: Instance): ConfigFile[] {
  return [
    { name: "valkey.conf", content: settings(instance), mode: 0o640 },
    {
      name: "listener.cfg",
      content: listenerConfig(instance, clientsOf("valkey", planOf(instance.spec))),
      mode: 0o640,
    },
    {
      name: "members.lst",
      content: otherMembers(instance)
        .map(({ nodeId }) => `${nodeId}\n`)
        .join(""),
      mode: 0o640,
    },
    { name: "allowed.lst", content: instance.spec.allowedCidrs.map((cidr) => `${cidr}\n`).join(""), mode: 0o640 },
  ];
}

function settings(instance: Instance): string {
  const { spec } = instance;
  const values = wantedParameters(instance);
  const fixed: [string, string][] = [
    // The socket is the only way in: the listener comes through it after it took TLS off and looked at the address.
    ["port", "0"],
    ["unixsocket", engineSocket(instance)],
    ["unixsocketperm", "770"],
    ["aclfile", aclFile(instance)],
    ["dir", dataDirectory(instance)],
    ["databases", String(platformDatabase + 1)],
    ["maxmemory", wantedMaxmemory(instance)],
    ["maxclients", String(clientsOf("valkey", planOf(spec)) + reservedClients)],
    ["appendonly", "yes"],
    ["aof-use-rdb-preamble", "yes"],
    ...noSnapshots,
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

/** This takes several words; everything else is one. */
function quote(name: string, value: string): string {
  return name === "replicaof" ? value : `"${value.replaceAll(/[\\"]/g, "\\$&").replaceAll(/[\r\n\0]/g, " ")}"`;
}
