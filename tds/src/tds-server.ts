import { once } from "node:events";
import { chmod, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { createSecureContext } from "node:tls";
import type { Endpoint } from "@holdfast/common/endpoint.ts";
import type { Log } from "@holdfast/common/log.ts";
import { listenAt } from "@holdfast/common/open-listeners.ts";
import { type SecureContexts, serveConnection } from "./session/connection.ts";
import { Usage } from "./run/usage.ts";
import type { BackendAddress } from "./session/sign-in.ts";

export interface TdsServerOptions {
  /** Address of the listener, or path of its Unix socket, which replaces that of a former process. */
  readonly at: Endpoint | { readonly path: string };
  readonly backend: BackendAddress;
  /** PEM of the service's certificate and its key. */
  readonly certificate: string;
  readonly key: string;
  readonly log: Log;
  /** Max time from the accepted connection to the end of the sign-in, 10 s by default. */
  readonly signInMs?: number;
  /** Max connections, 10,000 by default; further ones are closed immediately. */
  readonly connectionsMax?: number;
  /** Path of a Unix socket on which each connection gets a UsageReport as JSON. */
  readonly usageAt?: string;
}

export interface TdsServer {
  /** Port of the listener; 0 for a Unix socket. */
  readonly port: number;
  /** Sets the certificate of later connections. */
  setCertificate(certificate: string, key: string): void;
  /** Ends all sessions; their transactions roll back. */
  close(): Promise<void>;
}

/**
 * The front end of T-SQL clients. A connection is encrypted first (`session/connection.ts`), then signs in as a role of
 * PostgreSQL over the engine's socket (`session/sign-in.ts`), and each of its requests is parsed (`parse/`), translated
 * with the types of the catalog (`bind/`, `emit/`, `catalog/`) and run statement by statement (`run/`). All state that
 * outlives a connection is in the database.
 */
export async function startTdsServer(options: TdsServerOptions): Promise<TdsServer> {
  const { backend, log, signInMs = 10_000, connectionsMax = 10_000 } = options;
  const sockets = new Set<Socket>();
  const usage = new Usage(Date.now());
  let secureContexts = contextsOf(options.certificate, options.key);
  const server = createServer((socket) => {
    if (sockets.size >= connectionsMax) {
      socket.destroy();
      return;
    }
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    serveConnection(socket, { backend, secureContexts, log, signInMs, usage }).catch((error: unknown) => {
      log.error("tds connection failed", { error });
    });
  });
  const port = "path" in options.at ? await listenOn(server, options.at.path) : await listenAt(server, options.at);
  const usageServer = options.usageAt === undefined ? undefined : await reportUsage(usage, options.usageAt);
  return {
    port,
    setCertificate(certificate, key) {
      secureContexts = contextsOf(certificate, key);
    },
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      usageServer?.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** Serves the report of the moment of each connection. */
async function reportUsage(usage: Usage, path: string): Promise<Server> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.end(JSON.stringify(usage.report()));
  });
  await listenOn(server, path);
  return server;
}

async function listenOn(server: Server, path: string): Promise<0> {
  await rm(path, { force: true });
  const listening = once(server, "listening");
  server.listen(path);
  await listening;
  // The machine's agent, in the group of the engine's user, probes the front end.
  await chmod(path, 0o770);
  return 0;
}

function contextsOf(cert: string, key: string): SecureContexts {
  return {
    wrapped: createSecureContext({ cert, key, minVersion: "TLSv1.2", maxVersion: "TLSv1.2" }),
    strict: createSecureContext({ cert, key, minVersion: "TLSv1.2" }),
  };
}
