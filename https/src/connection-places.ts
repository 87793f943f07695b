import type { Socket } from "node:net";
import type { SourceGroups } from "@holdfast/common/source-groups.ts";

/** The connections of a port. A full port closes one for each that comes. */
export interface ConnectionPlaces {
  /** Counts it until it closes; closes the longest idle one of the source that has most when there are too many. */
  add(socket: Socket): void;
  readonly all: ReadonlySet<Socket>;
  close(): void;
}

interface Group {
  readonly factor: number;
  /** The longest idle one first. */
  readonly sockets: Set<Socket>;
}

const lookEveryMs = 5_000;

export function createConnectionPlaces(max: number, groupsOf: SourceGroups): ConnectionPlaces {
  const all = new Set<Socket>();
  const groups = new Map<string, Group>();
  const namesOf = new Map<Socket, readonly string[]>();
  const bytesOf = new WeakMap<Socket, number>();
  const looking = setInterval(look, lookEveryMs);
  looking.unref();

  /** Puts those on which something came or went behind those on which nothing did. */
  function look(): void {
    for (const socket of all.values().toArray()) {
      const bytes = socket.bytesRead + socket.bytesWritten;
      if (bytesOf.get(socket) === bytes) continue;
      bytesOf.set(socket, bytes);
      const groupsOfIt = (namesOf.get(socket) ?? []).flatMap((name) => groups.get(name)?.sockets ?? []);
      for (const sockets of [all, ...groupsOfIt]) if (sockets.delete(socket)) sockets.add(socket);
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

  function crowded(): ReadonlySet<Socket> {
    let most: ReadonlySet<Socket> = all;
    let share = 0;
    for (const { sockets, factor } of groups.values()) {
      if (sockets.size / factor <= share) continue;
      most = sockets;
      share = sockets.size / factor;
    }
    return most;
  }

  return {
    all,
    add(socket) {
      if (all.size >= max) {
        const [idle] = crowded();
        if (idle !== undefined) {
          remove(idle);
          idle.destroy();
        }
      }
      const mine = groupsOf(socket.remoteAddress ?? "");
      all.add(socket);
      namesOf.set(
        socket,
        mine.map(({ name }) => name),
      );
      for (const { name, factor } of mine) {
        const group = groups.get(name) ?? { factor, sockets: new Set() };
        group.sockets.add(socket);
        groups.set(name, group);
      }
      socket.once("close", () => remove(socket));
    },
    close: () => clearInterval(looking),
  };
}
