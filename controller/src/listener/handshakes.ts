import type { Socket } from "node:net";

/**
 * Has a few connections at a time do their handshakes. When a fleet comes back at once, whoever begins all of them ends none
 * before its peers lose patience; here those that wait cost nothing, and those that hung up meanwhile are never begun.
 */
export interface Handshakes {
  /** Begins it now, or in its turn. */
  enter(socket: Socket): void;
  /** The handshake of this host:port is over: a call came. */
  over(address: string): void;
}

export interface HandshakesOptions {
  readonly atOnce: number;
  /** After this a handshake makes way for the next one, whether it is over or not: a peer that stalls holds nobody up. */
  readonly waitMs: number;
  readonly begin: (socket: Socket) => void;
}

/** A first message of TLS is a few hundred bytes. */
const largestFirstBytes = 16 << 10;

interface Waiting {
  /** Stops reading and gives back what was read. */
  release(): void;
}

export function createHandshakes({ atOnce, waitMs, begin }: HandshakesOptions): Handshakes {
  const underWay = new Map<string, NodeJS.Timeout>();
  const waiting = new Map<Socket, Waiting>();

  function start(socket: Socket): void {
    const address = addressOf(socket);
    underWay.set(address, setTimeout(() => over(address), waitMs).unref());
    socket.once("close", () => over(address));
    begin(socket);
  }

  function over(address: string): void {
    const timer = underWay.get(address);
    if (timer === undefined) return;
    clearTimeout(timer);
    underWay.delete(address);
    for (const [socket, { release }] of waiting) {
      if (underWay.size >= atOnce) return;
      release();
      start(socket);
    }
  }

  /** Only a socket that is read tells that its peer is gone. */
  function wait(socket: Socket): void {
    const early: Buffer[] = [];
    let size = 0;
    const read = () => {
      for (let part = socket.read() as Buffer | null; part !== null; part = socket.read() as Buffer | null) {
        early.push(part);
        size += part.byteLength;
      }
      if (size > largestFirstBytes) socket.destroy();
    };
    const forget = () => void waiting.delete(socket);
    socket.on("readable", read);
    socket.once("end", forget);
    socket.once("close", forget);
    waiting.set(socket, {
      release() {
        forget();
        socket.off("readable", read);
        socket.off("end", forget);
        socket.off("close", forget);
        if (size > 0) socket.unshift(Buffer.concat(early));
      },
    });
  }

  return {
    enter(socket) {
      if (underWay.size < atOnce) start(socket);
      else wait(socket);
    },
    over,
  };
}

/** As grpc-js names a call's peer. */
export function addressOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress}:${remotePort}`;
}
