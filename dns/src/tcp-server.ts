import { type AddressInfo, createServer, type Socket } from "node:net";
import type { Log } from "@holdfast/common/log.ts";

export interface TcpServer {
  readonly port: number;
  close(): Promise<void>;
}

export interface TcpServerDeps {
  readonly host: string;
  readonly port: number;
  readonly answer: (query: Buffer) => Buffer | undefined;
  readonly log: Log;
  readonly idleMs?: number;
  readonly connections?: number;
  readonly connectionsPerSource?: number;
}

/** Answers queries on connections, many on each (RFC 7766). A client that reads no answers is read no further. */
export async function startTcpServer(deps: TcpServerDeps): Promise<TcpServer> {
  const { host, port, answer, log, idleMs = 10_000, connections = 400, connectionsPerSource = 100 } = deps;
  const open = new Set<Socket>();
  const bySource = new Map<string, number>();

  const server = createServer((socket) => {
    const source = socket.remoteAddress ?? "";
    const count = (bySource.get(source) ?? 0) + 1;
    if (open.size >= connections || count > connectionsPerSource) {
      socket.destroy();
      return;
    }
    open.add(socket);
    bySource.set(source, count);
    socket.setTimeout(idleMs, () => socket.destroy());
    socket.on("error", (error) => log.debug("dns connection broke", { error: error.message }));
    socket.on("close", () => {
      open.delete(socket);
      const left = (bySource.get(source) ?? 1) - 1;
      if (left === 0) bySource.delete(source);
      else bySource.set(source, left);
    });
    serve(socket, answer);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      server.on("error", (error) => log.error("tcp listener broke", { error }));
      resolve();
    });
  });
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = new Promise<void>((resolve) => void server.close(() => resolve()));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

function serve(socket: Socket, answer: (query: Buffer) => Buffer | undefined): void {
  let waiting: Buffer = Buffer.alloc(0);

  function take(): void {
    while (waiting.byteLength >= 2) {
      const length = waiting.readUInt16BE(0);
      if (waiting.byteLength < 2 + length) break;
      const response = answer(waiting.subarray(2, 2 + length));
      waiting = waiting.subarray(2 + length);
      // Whoever sends what deserves no answer over TCP is not a resolver.
      if (response === undefined) return void socket.destroy();
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
