import { once } from "node:events";
import { chmod, rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import type { Log } from "@holdfast/common/log.ts";
import type { Access } from "./commands.ts";
import type { Accesses, EngineAccesses } from "./session/accesses.ts";
import { type Connection, type SignedIn, serveConnection } from "./session/connection.ts";
import { refuseConnection } from "./session/excess.ts";
import { createMemory, type MemoryOptions } from "./session/memory.ts";
import { createReplySizes } from "./session/reply-sizes.ts";

/** Max number of connections that get an error at the same time; further ones are closed. */
const refusedMax = 200;
/** Number of forms of requests whose replies' sizes are remembered. */
const formsMax = 2_000;

export interface OpMsgServerOptions extends MemoryOptions {
  /** Path of the Unix socket, which replaces that of a former process. */
  readonly socket: string;
  /** Path of the Unix socket at which a connection gets the server's counts, as a line of JSON. */
  readonly statusSocket: string;
  /** Paths of the Unix sockets of the processes of the engine, by the access of their users. */
  readonly engineSockets: Readonly<Record<Access, string>>;
  readonly accesses: Pick<Accesses, "of" | "index">;
  /** Max number of connections; further ones get an error. */
  readonly connectionsMax: number;
  /** Time that a command waits for the memory of its reply, before it gets an error. */
  readonly replyWaitMs: number;
  readonly log: Log;
}

/** Counts of the server. `commands` grows until the process ends, which `since` identifies. */
export interface OpMsgStatus {
  /** Connections with a sign-in: drivers have others, which only watch the server. */
  readonly connections: number;
  readonly commands: number;
  readonly since: string;
}

export interface OpMsgServer {
  /**
   * Ends the connections of users whose access changed since their sign-in, or who may not sign in any more, and all
   * connections that signed in before the engine's process ended: it may be the former primary, and drivers find the
   * new one only by a new connection. Those of a replica that was promoted end too, since they may not write.
   * Rejects if the engine does not respond in time.
   */
  endChanged(): Promise<void>;
  close(): Promise<void>;
}

/** The front end of MongoDB's clients: it authorizes commands, for an engine that authorizes none. */
export async function startOpMsgServer(options: OpMsgServerOptions): Promise<OpMsgServer> {
  const { engineSockets, accesses, connectionsMax, replyWaitMs, log } = options;
  const open = new Map<Socket, Connection>();
  const refused = new Set<Socket>();
  const since = new Date().toISOString();
  let commands = 0;
  const deps = {
    sockets: engineSockets,
    accesses,
    memory: createMemory(options),
    replySizes: createReplySizes(formsMax),
    replyWaitMs,
    onCommand() {
      commands += 1;
    },
  };
  const server = createServer((socket) => {
    if (open.size >= connectionsMax) {
      if (refused.size >= refusedMax) {
        socket.destroy();
        return;
      }
      refused.add(socket);
      refuseConnection(socket, connectionsMax)
        .catch((error: unknown) => log.error("connection not refused", { error }))
        .finally(() => refused.delete(socket));
      return;
    }
    const connection = serveConnection(socket, deps);
    open.set(socket, connection);
    connection.ended
      .catch((error: unknown) => log.error("connection failed", { error }))
      .finally(() => open.delete(socket));
  });
  const status = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    const connections = [...open.values()].filter(({ signedIn }) => signedIn !== undefined).length;
    const counts: OpMsgStatus = { connections, commands, since };
    socket.end(`${JSON.stringify(counts)}\n`);
  });
  await listenOn(server, options.socket);
  await listenOn(status, options.statusSocket);
  return {
    async endChanged() {
      const users = new Set(
        [...open.values()].flatMap(({ signedIn }) => (signedIn === undefined ? [] : [signedIn.user])),
      );
      if (users.size === 0) return;
      const now = await accesses.of([...users]);
      for (const [socket, { signedIn }] of open)
        if (signedIn !== undefined && users.has(signedIn.user) && !isCurrent(signedIn, now)) socket.destroy();
    },
    async close() {
      const closed = [server, status].map((each) => new Promise((resolve) => each.close(resolve)));
      for (const socket of [...open.keys(), ...refused]) socket.destroy();
      await Promise.all(closed);
    },
  };
}

function isCurrent({ user, access, engineStarted, isReplica }: SignedIn, now: EngineAccesses | undefined): boolean {
  if (now === undefined || now.started !== engineStarted || now.isReplica !== isReplica) return false;
  return now.users.get(user) === access;
}

async function listenOn(server: ReturnType<typeof createServer>, path: string): Promise<void> {
  await rm(path, { force: true });
  const listening = once(server, "listening");
  server.listen(path);
  await listening;
  // The machine's agent, in the group of the engine's user, connects too.
  await chmod(path, 0o770);
}
