import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { addressesOf } from "../addresses.ts";
import { effectiveParameters } from "../effective-parameters.ts";
import type { Instance, Listener } from "../engine-driver.ts";
import type { Front } from "../front/front.ts";
import { tlsPassthroughFront } from "../front/tls-passthrough-front.ts";
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
 * The front of T-SQL clients. PostgreSQL itself listens at the other port, and enforces the allow-list there
 * (pg_hba.conf).
 */
export function frontOf(instance: Instance): Front {
  return tlsPassthroughFront(instance, {
    program: frontProgram(instance.paths.software),
    commandSocket: commandSocket(instance),
    addresses: frontEndListeners(instance),
    engineSocket: frontEndSocket(instance),
    connectionLimit: frontEndSessions(instance),
    idleComment: `PostgreSQL ends idle sessions (parameter "idle_session_timeout").`,
  });
}
