import { createServer, type Socket } from "node:net";
import { createKeyedCounter } from "@holdfast/common/concurrency/keyed-counter.ts";
import type { Log } from "@holdfast/common/log.ts";
import { listenAt } from "@holdfast/common/open-listeners.ts";
import { networkOf, type QueryRateLimit } from "./query-rate-limit.ts";

export interface TcpServer {
  readonly port: number;
  close(): Promise<void>;
}

export interface TcpServerDeps {
  readonly host: string;
  readonly port: number;
  readonly respond: (query: Buffer) => Buffer | undefined;
  /** A rate limit that UDP does not share, since a client over the UDP rate retries over TCP. */
  readonly rate: QueryRateLimit;
  readonly log: Log;
  readonly idleMs?: number;
  readonly connections?: number;
  readonly connectionsPerSource?: number;
}

/** Pause before a source over its rate is read again. */
const rateLimitedPauseMs = 200;

/**
 * Serves queries over connections, several on each (RFC 7766), within the rate of their source. While a client does not
 * read responses, its queries are not read. At the limit of connections, a new one closes the connection that is idle
 * longest, of the source with the most connections.
 */
export async function startTcpServer(deps: TcpServerDeps): Promise<TcpServer> {
  const { host, port, respond, rate, log, idleMs = 10_000, connections = 400, connectionsPerSource = 100 } = deps;
  /** Open connections with their source; the one that is idle longest is first. */
  const open = new Map<Socket, string>();
  const bySource = createKeyedCounter();

  const server = createServer((socket) => {
    const source = networkOf(socket.remoteAddress ?? "");
    const count = bySource.of(source) + 1;
    if (count > connectionsPerSource || (open.size >= connections && !evictIdle(count))) {
      socket.destroy();
      return;
    }
    open.set(socket, source);
    bySource.add(source);
    socket.setTimeout(idleMs, () => socket.destroy());
    socket.on("error", (error) => log.debug("dns connection broke", { error: error.message }));
    socket.on("close", () => remove(socket));
    socket.on("data", () => {
      if (open.delete(socket)) open.set(socket, source);
    });
    serve(socket, respond, () => rate.admit(socket.remoteAddress ?? "") === "answer");
  });

  /** Closes an idle connection. False if the new connection's source has the most connections. */
  function evictIdle(count: number): boolean {
    const fullest = bySource.highest();
    if (fullest === undefined || count > fullest.count) return false;
    for (const [socket, source] of open) {
      if (source !== fullest.key) continue;
      remove(socket);
      socket.destroy();
      return true;
    }
    return false;
  }

  function remove(socket: Socket): void {
    const source = open.get(socket);
    if (source === undefined) return;
    open.delete(socket);
    bySource.add(source, -1);
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

function serve(socket: Socket, respond: (query: Buffer) => Buffer | undefined, mayQuery: () => boolean): void {
  let buffered: Buffer = Buffer.alloc(0);

  function respondToBuffered(): void {
    while (buffered.byteLength >= 2) {
      const length = buffered.readUInt16BE(0);
      if (buffered.byteLength < 2 + length) break;
      if (!mayQuery()) {
        socket.pause();
        setTimeout(() => {
          if (socket.destroyed) return;
          socket.resume();
          respondToBuffered();
        }, rateLimitedPauseMs).unref();
        return;
      }
      const response = respond(buffered.subarray(2, 2 + length));
      buffered = buffered.subarray(2 + length);
      // A resolver never sends such packets over TCP.
      if (response === undefined) {
        socket.destroy();
        return;
      }
      const prefix = Buffer.alloc(2);
      prefix.writeUInt16BE(response.byteLength);
      if (!socket.write(Buffer.concat([prefix, response]))) {
        socket.pause();
        socket.once("drain", () => {
          respondToBuffered();
          socket.resume();
        });
        return;
      }
    }
  }

  socket.on("data", (bytes) => {
    buffered = buffered.byteLength === 0 ? bytes : Buffer.concat([buffered, bytes]);
    respondToBuffered();
  });
}
