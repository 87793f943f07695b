import { listenersOf } from "../addresses.ts";
import { effectiveParameters } from "../effective-parameters.ts";
import type { Instance } from "../engine-driver.ts";
import type { Front } from "../front/front.ts";
import { otherMembers } from "../members.ts";
import { certificateFile, engineSocket, frontProgram, keyFile, listenerSocket, peersSocket } from "./layout.ts";
import { peerPort } from "./replication/peer-port.ts";

/** Connections of other members, retries included. */
const peerConnections = 24;
/** Sessions of the platform and of other members, besides those of users. */
export const reservedSessions = 24 + peerConnections;

/** Number of sessions that users may have. */
export function userSessions(instance: Instance): number {
  return Number(effectiveParameters(instance).get("max_connections"));
}

/**
 * The front of MySQL. The engine listens on no TCP port, so nothing on the host can bypass the allow-list. TLS
 * begins inside the engine's own protocol, so the front passes it on.
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

/**
 * The front of the peer port. It admits the addresses of members alone, before the engine sees a connection, and
 * has a limit of its own: neither strangers nor users take the connections of members.
 */
export function peersFrontOf(instance: Instance): Front {
  const { spec } = instance;
  return {
    ...frontOf(instance),
    name: "peers",
    commandSocket: peersSocket(instance),
    connectionLimit: peerConnections,
    idleComment: "A replica ends a session that is silent.",
    listeners: [
      {
        name: "peers",
        mode: "pass",
        addresses: [{ address: spec.address, port: peerPort(instance) }],
        // The system queues as many before they are checked; the limit above counts those that are admitted.
        connectionLimit: 1_024,
        allows: { by: "network", file: "members.lst", cidrs: addressesOfMembers(instance) },
        backend: "engine",
      },
    ],
  };
}

function addressesOfMembers(instance: Instance): string[] {
  return otherMembers(instance).flatMap(({ address }) => (address === "" ? [] : [address]));
}
