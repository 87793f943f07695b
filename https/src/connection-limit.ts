import type { Socket } from "node:net";
import type { SourceGroups } from "@holdfast/common/source-groups.ts";

/** Limit on the connections of a port. If it is exceeded, one connection is closed for each new one. */
export interface ConnectionLimit {
  /**
   * Adds a connection until it closes. Above the limit it closes the connection that is idle longest, of the source
   * with the most connections.
   */
  add(socket: Socket): void;
  readonly all: ReadonlySet<Socket>;
  close(): void;
}

interface Group {
  readonly factor: number;
  /** Open connections, ordered by their last traffic: the connection that is idle longest is first. */
  readonly sockets: Set<Socket>;
}

const idleCheckIntervalMs = 5_000;

export function createConnectionLimit(max: number, groupsOf: SourceGroups): ConnectionLimit {
  const all = new Set<Socket>();
  const groups = new Map<string, Group>();
  const namesOf = new Map<Socket, readonly string[]>();
  const bytesOf = new WeakMap<Socket, number>();
  const timer = setInterval(updateIdleOrder, idleCheckIntervalMs);
  timer.unref();

  /** Moves connections with traffic since the last check to the end of the order. */
  function updateIdleOrder(): void {
    for (const socket of all.values().toArray()) {
      const bytes = socket.bytesRead + socket.bytesWritten;
      if (bytesOf.get(socket) === bytes) continue;
      bytesOf.set(socket, bytes);
      const ownGroups = (namesOf.get(socket) ?? []).flatMap((name) => groups.get(name)?.sockets ?? []);
      for (const sockets of [all, ...ownGroups]) if (sockets.delete(socket)) sockets.add(socket);
    }
  }

  function remove(socket: Socket): void {
    all.delete(socket);
    for (const name of namesOf.get(socket) ?? []) {
      const group = groups.get(name);
      group?.sockets.delete(socket);
      if (group?.sockets.size === 0) groups.delete(name);
    }
    namesOf.delete(socket);
  }

  function largestGroup(): ReadonlySet<Socket> {
    let largest: ReadonlySet<Socket> = all;
    let share = 0;
    for (const { sockets, factor } of groups.values()) {
      if (sockets.size / factor <= share) continue;
      largest = sockets;
      share = sockets.size / factor;
    }
    return largest;
  }

  return {
    all,
    add(socket) {
      if (all.size >= max) {
        const [idle] = largestGroup();
        if (idle !== undefined) {
          remove(idle);
          idle.destroy();
        }
      }
      const sourceGroups = groupsOf(socket.remoteAddress ?? "");
      all.add(socket);
      namesOf.set(
        socket,
        sourceGroups.map(({ name }) => name),
      );
      for (const { name, factor } of sourceGroups) {
        const group = groups.get(name) ?? { factor, sockets: new Set() };
        group.sockets.add(socket);
        groups.set(name, group);
      }
      socket.once("close", () => remove(socket));
    },
    close: () => clearInterval(timer),
  };
}
