import { listenersOf } from "../addresses.ts";
import { effectiveParameters } from "../effective-parameters.ts";
import type { Instance } from "../engine-driver.ts";
import type { Front } from "../front/front.ts";
import { tlsPassthroughFront } from "../front/tls-passthrough-front.ts";
import { otherMembers } from "../members.ts";
import { engineSocket, forwardedSocket, frontProgram, listenerSocket, peersSocket } from "./layout.ts";
import { peerPort } from "./replication/peer-port.ts";

/** Max number of connections of other members, retries included. */
const peerConnections = 24;
/** Sessions of the platform and of other members, in addition to the sessions of users. */
export const reservedSessions = 24 + peerConnections;

/** Number of sessions that users may have. */
export function userSessions(instance: Instance): number {
  return Number(effectiveParameters(instance).get("max_connections"));
}

/**
 * The front of MySQL's clients. Connections that poolers forward count toward the same limit, and their clients'
 * addresses are checked by the same list.
 */
export function frontOf(instance: Instance): Front {
  const front = tlsPassthroughFront(instance, {
    program: frontProgram(instance.paths.software),
    commandSocket: listenerSocket(instance),
    addresses: listenersOf(instance),
    engineSocket: engineSocket(instance),
    connectionLimit: userSessions(instance),
    idleComment: `MySQL ends idle sessions (parameter "wait_timeout").`,
  });
  const [listener] = front.listeners;
  if (listener === undefined) return front;
  const forwarded = { ...listener, name: "forwarded", addresses: [], forwardedSocket: forwardedSocket(instance) };
  return { ...front, listeners: [listener, forwarded] };
}

/**
 * The front of the peer port. It admits only the addresses of members, before the engine sees a connection, and has a
 * separate connection limit, so that no other client can use up the members' connections.
 */
export function peersFrontOf(instance: Instance): Front {
  const { spec } = instance;
  return {
    ...frontOf(instance),
    name: "peers",
    commandSocket: peersSocket(instance),
    connectionLimit: peerConnections,
    idleComment: "Replicas end silent sessions.",
    listeners: [
      {
        name: "peers",
        mode: "pass",
        addresses: [{ address: spec.address, port: peerPort(instance) }],
        // Connections that wait for the check of their address. The limit above counts admitted connections.
        connectionLimit: 1_024,
        allows: { by: "network", file: "members.lst", cidrs: addressesOfMembers(instance) },
        backend: "engine",
      },
    ],
  };
}

/** Private addresses of the other members. */
export function addressesOfMembers(instance: Instance): string[] {
  return otherMembers(instance).flatMap(({ address }) => (address === "" ? [] : [address]));
}
