import { listenersOf } from "../addresses.ts";
import { effectiveParameters } from "../effective-parameters.ts";
import type { Instance } from "../engine-driver.ts";
import type { Front } from "../front/front.ts";
import { certificateFile, engineSocket, frontProgram, keyFile, listenerSocket } from "./layout.ts";

/** Sessions of the platform and of other members, which bypass the front. */
export const reservedSessions = 48;

/** Number of sessions that users may have. */
export function userSessions(instance: Instance): number {
  return Number(effectiveParameters(instance).get("max_connections"));
}

/**
 * Pure: the front of MySQL. The engine listens on no TCP port for clients, so nothing on the host can bypass the
 * allow-list: its peer port admits no users. TLS begins inside the engine's own protocol, so the front passes it on.
 */
export function frontOf(instance: Instance): Front {
  const { spec, paths } = instance;
  return {
    nodeId: spec.nodeId,
    program: frontProgram(paths.software),
    configDirectory: paths.config,
    commandSocket: listenerSocket(instance),
    certificateFile: certificateFile(instance),
    keyFile: keyFile(instance),
    vcpu: spec.vcpu,
    connectionLimit: userSessions(instance),
    idleComment: `Idle sessions are MySQL's business (its parameter "wait_timeout").`,
    listeners: [
      {
        name: "listener",
        mode: "pass",
        addresses: listenersOf(instance),
        allows: { by: "network", file: "allowed.lst", cidrs: spec.allowedCidrs },
        backend: "engine",
      },
    ],
    backends: { engine: { socket: engineSocket(instance) } },
  };
}
