import { chmodSync, chownSync, renameSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import type { KeeperEvent, KeeperReply, KeeperRequest } from "./keeper-protocol.ts";

/** A connection of one agent. */
export interface Caller {
  send(event: KeeperEvent): void;
}

export interface KeeperServer {
  listen(): Promise<void>;
  /** Sends to every connected agent. */
  broadcast(event: KeeperEvent): void;
  close(): void;
}

const maxRequestBytes = 1 << 20;

/** Serves the keeper's protocol on a Unix socket that only the machine's own user can open. */
export function createKeeperServer(
  path: string,
  owner: number | undefined,
  respond: (request: KeeperRequest, caller: Caller) => Promise<KeeperReply>,
): KeeperServer {
  const connections = new Set<Socket>();
  const server: Server = createServer((socket) => {
    connections.add(socket);
    const caller: Caller = { send: (event) => send(socket, event) };
    let partial = "";
    socket.setEncoding("utf8");
    socket.on("data", (text: string) => {
      const lines = (partial + text).split("\n");
      partial = lines.pop() ?? "";
      if (partial.length > maxRequestBytes) socket.destroy();
      for (const line of lines) serve(socket, caller, line);
    });
    socket.on("close", () => connections.delete(socket));
    // The agent was killed; a close event follows.
    socket.on("error", () => socket.destroy());
  });

  function serve(socket: Socket, caller: Caller, line: string): void {
    const request = parse(line);
    if (request === undefined) {
      socket.destroy();
      return;
    }
    respond(request, caller)
      .catch((error: unknown): KeeperReply => ({ id: request.id, ok: false, error: (error as Error).message }))
      .then((reply) => send(socket, reply))
      .catch(() => socket.destroy());
  }

  function send(socket: Socket, message: KeeperReply | KeeperEvent): void {
    if (!socket.destroyed) socket.write(`${JSON.stringify(message)}\n`);
  }

  return {
    listen() {
      // The socket's file exists before it listens and before it has its mode, so it is renamed to its public name
      // last.
      const temporary = `${path}.new`;
      rmSync(temporary, { force: true });
      return new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen(temporary, () => {
          chmodSync(temporary, 0o600);
          if (owner !== undefined) chownSync(temporary, owner, owner);
          renameSync(temporary, path);
          resolve();
        });
      });
    },
    broadcast(event) {
      for (const socket of connections) send(socket, event);
    },
    close() {
      server.close();
      rmSync(path, { force: true });
      for (const socket of connections) socket.destroy();
    },
  };
}

function parse(line: string): KeeperRequest | undefined {
  try {
    const request = JSON.parse(line) as KeeperRequest;
    return typeof request === "object" && request !== null && typeof request.id === "number" ? request : undefined;
  } catch {
    return undefined;
  }
}
