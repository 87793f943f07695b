import { mongodbClients } from "@holdfast/common/engine-catalog/mongodb.ts";
import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { join } from "node:path";
import { addressesOf } from "../addresses.ts";
import { planOf } from "../effective-parameters.ts";
import type { Instance, Listener } from "../engine-driver.ts";
import type { Front } from "../front/front.ts";
import { commandSocket, frontEndSocket, frontProgram } from "./layout.ts";

const listenerName = engineOf("mongodb")?.frontEnd?.listener;

/** Connections beyond the maximum that get an error of the front end; others wait. */
const refusedConnections = 100;

/** Addresses of clients; empty for an instance without clients, such as that of a drill. */
export function clientListeners({ spec }: Pick<Instance, "spec">): Listener[] {
  const port = spec.listeners.find(({ name }) => name === listenerName)?.port;
  return port === undefined ? [] : addressesOf(spec).map((address) => ({ address, port }));
}

/** The front of clients: HAProxy terminates TLS and enforces the allow-list. */
export function frontOf(instance: Instance): Front {
  const { spec, paths } = instance;
  return {
    nodeId: spec.nodeId,
    program: frontProgram(paths.software),
    configDirectory: paths.config,
    commandSocket: commandSocket(instance),
    certificateFile: join(paths.tls, "server.crt"),
    keyFile: join(paths.tls, "server.key"),
    vcpu: spec.vcpu,
    connectionLimit: mongodbClients(planOf(spec)) + refusedConnections,
    idleComment: "Drivers hold idle connections.",
    listeners: [
      {
        name: "listener",
        mode: "terminate",
        addresses: clientListeners(instance),
        allows: { by: "network", file: "allowed.lst", cidrs: spec.allowedCidrs },
        backend: "engine",
      },
    ],
    backends: { engine: { socket: frontEndSocket(instance) } },
  };
}
