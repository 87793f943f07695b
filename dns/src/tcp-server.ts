import { createServer, type Socket } from "node:net";
import type { Log } from "@holdfast/common/log.ts";
import { listenAt } from "@holdfast/common/open-listeners.ts";
import { networkOf, type SourceRate } from "./source-rate.ts";

export interface TcpServer {
  readonly port: number;
  close(): Promise<void>;
}

export interface TcpServerDeps {
  readonly host: string;
  readonly port: number;
  readonly answer: (query: Buffer) => Buffer | undefined;
  /** Apart from that of UDP: who is told to come back over TCP is over that one. */
  readonly rate: SourceRate;
  readonly log: Log;
  readonly idleMs?: number;
  readonly connections?: number;
  readonly connectionsPerSource?: number;
}

/** A source that is over its rate is read again after this. */
const overRateMs = 200;

/**
 * Answers queries on connections, many on each (RFC 7766), as often as their source may ask. A client that reads no answers
 * is read no further. Where all places are taken, the longest idle connection of the source that has most makes way.
 */
export async function startTcpServer(deps: TcpServerDeps): Promise<TcpServer> {
  const { host, port, answer, rate, log, idleMs = 10_000, connections = 400, connectionsPerSource = 100 } = deps;
  /** Each with its source, the longest idle first. */
  const open = new Map<Socket, string>();
  const bySource = new Map<string, number>();

  const server = createServer((socket) => {
    const source = networkOf(socket.remoteAddress ?? "");
    const count = (bySource.get(source) ?? 0) + 1;
    if (count > connectionsPerSource || (open.size >= connections && !makeRoom(count))) {
      socket.destroy();
      return;
    }
    open.set(socket, source);
    bySource.set(source, count);
    socket.setTimeout(idleMs, () => socket.destroy());
    socket.on("error", (error) => log.debug("dns connection broke", { error: error.message }));
    socket.on("close", () => leave(socket));
    socket.on("data", () => {
      if (open.delete(socket)) open.set(socket, source);
    });
    serve(socket, answer, () => rate.admit(socket.remoteAddress ?? "") === "answer");
  });

  /** False when the newcomer's own source has most. */
  function makeRoom(count: number): boolean {
    const [fullest, most] = [...bySource].reduce((best, each) => (each[1] > best[1] ? each : best), ["", 0]);
    if (count > most) return false;
    for (const [socket, source] of open) {
      if (source !== fullest) continue;
      leave(socket);
      socket.destroy();
      return true;
    }
    return false;
  }

  function leave(socket: Socket): void {
    const source = open.get(socket);
    if (source === undefined) return;
    open.delete(socket);
    const left = (bySource.get(source) ?? 1) - 1;
    if (left === 0) bySource.delete(source);
    else bySource.set(source, left);
  }

  const listening = await listenAt(server, { host, port });
  server.on("error", (error) => log.error("tcp listener broke", { error }));
  return {
    port: listening,
    async close() {
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      for (const socket of open.keys()) socket.destroy();
      await closed;
    },
  };
}

function serve(socket: Socket, answer: (query: Buffer) => Buffer | undefined, mayAsk: () => boolean): void {
  let waiting: Buffer = Buffer.alloc(0);

  function take(): void {
    while (waiting.byteLength >= 2) {
      const length = waiting.readUInt16BE(0);
      if (waiting.byteLength < 2 + length) break;
      if (!mayAsk()) {
        socket.pause();
        setTimeout(() => {
          if (socket.destroyed) return;
          socket.resume();
          take();
        }, overRateMs).unref();
        return;
      }
      const response = answer(waiting.subarray(2, 2 + length));
      waiting = waiting.subarray(2 + length);
      // Whoever sends what deserves no answer over TCP is not a resolver.
      if (response === undefined) {
        socket.destroy();
        return;
      }
      const prefix = Buffer.alloc(2);
      prefix.writeUInt16BE(response.byteLength);
      if (!socket.write(Buffer.concat([prefix, response]))) {
        socket.pause();
        socket.once("drain", () => {
          take();
          socket.resume();
        });
        return;
      }
    }
  }

  socket.on("data", (bytes) => {
    waiting = waiting.byteLength === 0 ? bytes : Buffer.concat([waiting, bytes]);
    take();
  });
}
