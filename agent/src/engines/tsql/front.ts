import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { addressesOf } from "../addresses.ts";
import { effectiveParameters } from "../effective-parameters.ts";
import type { Instance, Listener } from "../engine-driver.ts";
import type { Front } from "../front/front.ts";
import { commandSocket, frontEndSocket, frontProgram } from "./layout.ts";

const listenerName = engineOf("tsql")?.frontEnd?.listener;

/** Addresses of T-SQL clients; empty for an instance without clients, such as that of a drill. */
export function frontEndListeners({ spec }: Pick<Instance, "spec">): Listener[] {
  const port = spec.listeners.find(({ name }) => name === listenerName)?.port;
  return port === undefined ? [] : addressesOf(spec).map((address) => ({ address, port }));
}

/** Max number of T-SQL sessions: each has a session of PostgreSQL. */
export function frontEndSessions(instance: Instance): number {
  return Number(effectiveParameters(instance).get("max_connections"));
}

/**
 * The front of T-SQL clients. TLS begins inside of TDS, so HAProxy passes it on to the front end, which listens on no
 * TCP port. PostgreSQL itself listens for the clients of its own protocol, with its own allow-list.
 */
export function frontOf(instance: Instance): Front {
  const { spec, paths } = instance;
  return {
    nodeId: spec.nodeId,
    program: frontProgram(paths.software),
    configDirectory: paths.config,
    commandSocket: commandSocket(instance),
    certificateFile: `${paths.tls}/server.crt`,
    keyFile: `${paths.tls}/server.key`,
    vcpu: spec.vcpu,
    connectionLimit: frontEndSessions(instance),
    idleComment: `PostgreSQL ends idle sessions (parameter "idle_session_timeout").`,
    listeners: [
      {
        name: "listener",
        mode: "pass",
        addresses: frontEndListeners(instance),
        allows: { by: "network", file: "tds-allowed.lst", cidrs: spec.allowedCidrs },
        backend: "tds",
      },
    ],
    backends: { tds: { socket: frontEndSocket(instance) } },
  };
}
