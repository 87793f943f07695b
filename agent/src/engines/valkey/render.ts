import { clientsOf, valkeyMaxmemoryBytes } from "@holdfast/common/engine-catalog/plan-parameters.ts";
import { effectiveParameters, planOf } from "../effective-parameters.ts";
import type { ConfigFile, Instance } from "../engine-driver.ts";
import { aclFile, dataDirectory, engineSocket, platformDatabase } from "./layout.ts";
import { otherMembers } from "../members.ts";
import { replicationSettings } from "./replication/peer-way.ts";
import { listenerConfig } from "./listener-config.ts";

/** Connections that only the platform makes, past the listener. */
const reservedClients = 32;

/** More than there are refuses every write. */
export const blockingParameter = "min-replicas-to-write";
const moreReplicasThanAny = "2147483647";

/** Whoever asks for all contents, a replica or a backup, gets them at once: the engine waits for more of them otherwise. */
export const copySettings: [string, string][] = [["repl-diskless-sync-delay", "0"]];

/** Pure: what the engine is to run with of the parameters in the catalog. */
export function wantedParameters(instance: Instance): Map<string, string> {
  const values = effectiveParameters(instance);
  return instance.writesBlocked === true ? values.set(blockingParameter, moreReplicasThanAny) : values;
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
    ["maxmemory", String(valkeyMaxmemoryBytes(planOf(spec)))],
    ["maxclients", String(clientsOf("valkey", planOf(spec)) + reservedClients)],
    ["appendonly", "yes"],
    ["aof-use-rdb-preamble", "yes"],
    ["save", "3600 1 300 100 60 10000"],
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

/** These take several words; everything else is one. */
function quote(name: string, value: string): string {
  return name === "save" || name === "replicaof"
    ? value
    : `"${value.replaceAll(/[\\"]/g, "\\$&").replaceAll(/[\r\n\0]/g, " ")}"`;
}
