import { clientsOf, valkeyMaxmemoryBytes } from "@holdfast/common/engine-catalogue/plan-parameters.ts";
import { effectiveParameters, planOf } from "../effective-parameters.ts";
import type { ConfigFile, Instance } from "../engine-driver.ts";
import { aclFile, dataDirectory, engineSocket, platformDatabase } from "./layout.ts";
import { listenerConfig } from "./listener-config.ts";

/** Connections that only the platform makes, past the listener. */
const reservedClients = 32;

/** Pure: valkey.conf, the listener's configuration and its allow-list. */
export function render(instance: Instance): ConfigFile[] {
  return [
    { name: "valkey.conf", content: settings(instance), mode: 0o640 },
    {
      name: "listener.cfg",
      content: listenerConfig(instance, clientsOf("valkey", planOf(instance.spec))),
      mode: 0o640,
    },
    { name: "allowed.lst", content: instance.spec.allowedCidrs.map((cidr) => `${cidr}\n`).join(""), mode: 0o640 },
  ];
}

function settings(instance: Instance): string {
  const { spec } = instance;
  const values = effectiveParameters(instance);
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
  ];
  for (const [name, value] of fixed) values.set(name, value);
  const lines = [...values]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name} ${quote(name, value)}`);
  return `# Written by the agent of ${spec.nodeId}: changes made here are lost.\n${lines.join("\n")}\n`;
}

/** `save` takes several words; everything else is one. */
function quote(name: string, value: string): string {
  return name === "save" ? value : `"${value.replaceAll(/[\\"]/g, "\\$&").replaceAll(/[\r\n\0]/g, " ")}"`;
}
