import type { Socket } from "node:net";
import { addressOf } from "@holdfast/common/handshakes.ts";
import type { SourceGroup, SourceGroups } from "@holdfast/common/source-groups.ts";
import { sourcesOf } from "./source.ts";

/**
 * The connections of a port. Who has not shown a good certificate in a call is a stranger, who may stay for a moment and say
 * little. A full port turns away the newcomer of the source that has most, or ends the oldest stranger of that one.
 */
export interface Connections {
  /** Takes it, or destroys it where there is no room. */
  enter(socket: Socket): boolean;
  /** A call with a good certificate came from this host:port. */
  known(address: string): void;
  isStranger(address: string): boolean;
  /** Ends the connection from this host:port at once, with every call on it. */
  disconnect(address: string): void;
  readonly size: number;
  close(): void;
}

export interface ConnectionsOptions {
  readonly most: number;
  /** How long a stranger may stay, from its connect on, and how many bytes it may send. */
  readonly strangerMs: number;
  readonly strangerBytes: number;
  /** What an address is counted in; by default its prefixes. */
  readonly sources?: SourceGroups;
}

const lookEveryMs = 50;

interface Connection {
  readonly socket: Socket;
  /** As it was: a closed socket has none. */
  readonly address: string;
  readonly sources: readonly SourceGroup[];
  readonly since: number;
}

export function createConnections(options: ConnectionsOptions): Connections {
  const { most, strangerMs, strangerBytes, sources: groupsOf = sourcesOf } = options;
  const all = new Map<string, Connection>();
  /** The oldest first. */
  const strangers = new Map<string, Connection>();
  const counts = new Map<string, { of: number; readonly factor: number }>();
  // One look at all strangers; their bytes are read by TLS, which tells nobody how many there are.
  const timer = setInterval(look, lookEveryMs).unref();

  function look(): void {
    const now = performance.now();
    for (const { socket, since } of strangers.values()) {
      if (now - since > strangerMs || socket.bytesRead > strangerBytes) socket.destroy();
    }
  }

  /** Is there room for one more of these sources, or can some be made? */
  function hasRoom(sources: readonly SourceGroup[]): boolean {
    if (all.size < most) return true;
    let [fullest, share] = ["", 0];
    const consider = (name: string, each: number) => {
      if (each > share) [fullest, share] = [name, each];
    };
    for (const { name, factor } of sources) consider(name, ((counts.get(name)?.of ?? 0) + 1) / factor);
    for (const [name, { of, factor }] of counts) consider(name, of / factor);
    for (const connection of strangers.values()) {
      if (!connection.sources.some(({ name }) => name === fullest)) continue;
      leave(connection);
      connection.socket.destroy();
      return true;
    }
    return false;
  }

  function leave(connection: Connection): void {
    const { address, sources } = connection;
    if (all.get(address) !== connection) return;
    all.delete(address);
    strangers.delete(address);
    for (const { name } of sources) {
      const count = counts.get(name);
      if (count === undefined) continue;
      count.of -= 1;
      if (count.of === 0) counts.delete(name);
    }
  }

  return {
    enter(socket) {
      const sources = groupsOf(socket.remoteAddress ?? "");
      if (!hasRoom(sources)) {
        socket.destroy();
        return false;
      }
      const address = addressOf(socket);
      const connection: Connection = { socket, address, sources, since: performance.now() };
      all.set(address, connection);
      strangers.set(address, connection);
      for (const { name, factor } of sources) {
        const count = counts.get(name) ?? { of: 0, factor };
        count.of += 1;
        counts.set(name, count);
      }
      socket.on("close", () => leave(connection));
      return true;
    },
    known: (address) => {
      strangers.delete(address);
    },
    isStranger: (address) => strangers.has(address),
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
