import { createServer, type Server, type Socket } from "node:net";
import type { Server as TlsServer } from "node:tls";
import type { ClientAddresses } from "@holdfast/common/client-address.ts";
import type { Endpoint } from "@holdfast/common/endpoint.ts";
import { addressOf, createHandshakes } from "@holdfast/common/handshakes.ts";
import { listenAt } from "@holdfast/common/open-listeners.ts";
import { createConnectionPlaces } from "./connection-places.ts";
import { takeProxyHeader } from "./proxy-header.ts";

export interface PortEntranceOptions {
  /** Takes connections by its event `connection`, and does their handshakes. */
  readonly server: TlsServer;
  /** Past it the longest idle connection of the source that has most is closed. */
  readonly maxConnections: number;
  /** Sources, and proxies whose PROXY headers are believed. */
  readonly clients: Pick<ClientAddresses, "sources" | "isTrusted">;
  /** Time for a PROXY header, and for the first word of a handshake. */
  readonly headMs: number;
}

/** Connections of a public port before TLS: counted by source, with their handshakes in a line by source. */
export interface PortEntrance {
  /** Resolves to the port when it listens there, besides where it does already. */
  openAt(at: Endpoint, options?: { readonly reusePort?: boolean }): Promise<number>;
  /** The address of the connection's other end, or the one that a trusted proxy named for it. */
  peerOf(socket: Pick<Socket, "remoteAddress" | "remotePort">): string;
  /** Takes no new connection; resolves when all that are open have ended. */
  stop(): Promise<void>;
  /** Ends all connections at once. */
  destroyAll(): void;
  close(): void;
}

/** Enough to keep this thread busy while clients answer; each takes a millisecond or two of it. */
const handshakesAtOnce = 64;
/** After this a client that stalls has its place no longer. */
const handshakeWaitMs = 1_000;

export function createPortEntrance({ server, maxConnections, clients, headMs }: PortEntranceOptions): PortEntrance {
  const { sources } = clients;
  /** By the connection's other end: the address that a trusted proxy named. */
  const named = new Map<string, string>();
  const places = createConnectionPlaces(maxConnections, sources);
  const listeners: Server[] = [];

  const handshakes = createHandshakes({
    atOnce: handshakesAtOnce,
    waitMs: handshakeWaitMs,
    silentMs: headMs,
    sources,
    begin: (socket) => server.emit("connection", socket),
  });
  const enter = (socket: Socket) => {
    places.add(socket);
    // TLS reports on a socket of its own.
    socket.on("error", () => socket.destroy());
    if (!clients.isTrusted(socket.remoteAddress ?? "")) return handshakes.enter(socket);
    const end = addressOf(socket);
    takeProxyHeader(socket, headMs).then(
      (address) => {
        if (address !== undefined) {
          named.set(end, address);
          socket.once("close", () => named.delete(end));
        }
        handshakes.enter(socket);
      },
      () => socket.destroy(),
    );
  };
  // Others accept for it: this has Node look for requests over HTTP/1.1 that are slow.
  server.emit("listening");
  server.on("secureConnection", ({ remoteAddress, remotePort }) =>
    handshakes.over(addressOf({ remoteAddress, remotePort })),
  );
  // A client that breaks off in its handshake is its own affair.
  server.on("tlsClientError", (_error, socket) => socket.destroy());

  return {
    openAt(at, { reusePort = false } = {}) {
      const listener = createServer(enter);
      listeners.push(listener);
      return listenAt(listener, at, { reusePort });
    },
    peerOf: (socket) => named.get(addressOf(socket)) ?? socket.remoteAddress ?? "",
    async stop() {
      await Promise.all(listeners.map((listener) => new Promise<void>((resolve) => listener.close(() => resolve()))));
    },
    destroyAll() {
      for (const socket of places.all) socket.destroy();
    },
    close: () => places.close(),
  };
}
