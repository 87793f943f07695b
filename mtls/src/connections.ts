import type { Socket } from "node:net";
import { peerAddressOf } from "@holdfast/common/handshake-limiter.ts";
import type { SourceGroup, SourceGroups } from "@holdfast/common/source-groups.ts";
import { sourcesOf } from "./peer.ts";

/**
 * The connections of a port. A connection is unauthenticated until a call presents a valid certificate; until then its
 * time and bytes are limited. If the port is full, the source with the most connections loses its oldest
 * unauthenticated one; a new connection of that source is refused if it has none.
 */
export interface Connections {
  /** Adds the connection; destroys it and returns false if the port is full. */
  add(socket: Socket): boolean;
  /** Marks the connection from this host:port as authenticated. */
  authenticated(address: string): void;
  isUnauthenticated(address: string): boolean;
  /** Closes the connection from this host:port immediately, with all its calls. */
  disconnect(address: string): void;
  readonly size: number;
  close(): void;
}

export interface ConnectionsOptions {
  readonly max: number;
  /** Limits of an unauthenticated connection: time since it was accepted, and received bytes. */
  readonly unauthenticatedMs: number;
  readonly unauthenticatedBytes: number;
  /** Source groups of an address; by default its prefixes. */
  readonly sources?: SourceGroups;
}

const checkIntervalMs = 50;

interface Connection {
  readonly socket: Socket;
  /** host:port of the peer; a closed socket no longer has it. */
  readonly address: string;
  readonly sources: readonly SourceGroup[];
  readonly since: number;
}

export function createConnections(options: ConnectionsOptions): Connections {
  const { max, unauthenticatedMs, unauthenticatedBytes, sources: groupsOf = sourcesOf } = options;
  const all = new Map<string, Connection>();
  /** Unauthenticated connections, the oldest first. */
  const unauthenticated = new Map<string, Connection>();
  const counts = new Map<string, { open: number; readonly factor: number }>();
  // A single timer checks all of them; TLS reads the bytes and reports no counts.
  const timer = setInterval(check, checkIntervalMs).unref();

  function check(): void {
    const now = performance.now();
    for (const { socket, since } of unauthenticated.values()) {
      if (now - since > unauthenticatedMs || socket.bytesRead > unauthenticatedBytes) socket.destroy();
    }
  }

  /** True if there is capacity for one more connection of these sources, after closing one if necessary. */
  function reserve(sources: readonly SourceGroup[]): boolean {
    if (all.size < max) return true;
    let [fullest, share] = ["", 0];
    const consider = (name: string, each: number) => {
      if (each > share) [fullest, share] = [name, each];
    };
    for (const { name, factor } of sources) consider(name, ((counts.get(name)?.open ?? 0) + 1) / factor);
    for (const [name, { open, factor }] of counts) consider(name, open / factor);
    for (const connection of unauthenticated.values()) {
      if (!connection.sources.some(({ name }) => name === fullest)) continue;
      remove(connection);
      connection.socket.destroy();
      return true;
    }
    return false;
  }

  function remove(connection: Connection): void {
    const { address, sources } = connection;
    if (all.get(address) !== connection) return;
    all.delete(address);
    unauthenticated.delete(address);
    for (const { name } of sources) {
      const count = counts.get(name);
      if (count === undefined) continue;
      count.open -= 1;
      if (count.open === 0) counts.delete(name);
    }
  }

  return {
    add(socket) {
      const sources = groupsOf(socket.remoteAddress ?? "");
      if (!reserve(sources)) {
        socket.destroy();
        return false;
      }
      const address = peerAddressOf(socket);
      const connection: Connection = { socket, address, sources, since: performance.now() };
      all.set(address, connection);
      unauthenticated.set(address, connection);
      for (const { name, factor } of sources) {
        const count = counts.get(name) ?? { open: 0, factor };
        count.open += 1;
        counts.set(name, count);
      }
      socket.on("close", () => remove(connection));
      return true;
    },
    authenticated: (address) => {
      unauthenticated.delete(address);
    },
    isUnauthenticated: (address) => unauthenticated.has(address),
    disconnect: (address) => {
      all.get(address)?.socket.destroy();
    },
    get size() {
      return all.size;
    },
    close() {
      clearInterval(timer);
      for (const { socket } of all.values()) socket.destroy();
    },
  };
}
