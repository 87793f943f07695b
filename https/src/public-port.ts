import { createServer, type Server, type Socket } from "node:net";
import type { Server as TlsServer } from "node:tls";
import type { ClientAddresses } from "@holdfast/common/client-address.ts";
import type { Endpoint } from "@holdfast/common/endpoint.ts";
import { peerAddressOf, createHandshakeLimiter } from "@holdfast/common/handshake-limiter.ts";
import { listenAt } from "@holdfast/common/open-listeners.ts";
import { createConnectionLimit } from "./connection-limit.ts";
import { takeProxyHeader } from "./proxy-header.ts";

export interface PublicPortOptions {
  /** Accepts connections as `connection` events and does their TLS handshakes. */
  readonly server: TlsServer;
  /** Limit at which the connection that is idle longest, of the source with the most connections, is closed. */
  readonly maxConnections: number;
  /** Source groups, and trusted proxies whose PROXY headers are read. */
  readonly clients: Pick<ClientAddresses, "sources" | "isTrusted">;
  /** Time in milliseconds for a PROXY header and for the first byte of a handshake. */
  readonly headMs: number;
}

/**
 * A public port before TLS. It limits connections by source, reads PROXY headers of trusted proxies, and queues TLS
 * handshakes by source.
 */
export interface PublicPort {
  /** Listens on a further endpoint; resolves with the port. */
  openAt(at: Endpoint, options?: { readonly reusePort?: boolean }): Promise<number>;
  /** Address of the peer, or of the client that a trusted proxy named. */
  peerOf(socket: Pick<Socket, "remoteAddress" | "remotePort">): string;
  /** Accepts no further connections; resolves when all have closed. */
  stop(): Promise<void>;
  /** Closes all connections immediately. */
  destroyAll(): void;
  close(): void;
}

/** Enough to use one CPU while clients respond; each handshake takes a millisecond or two of it. */
const handshakesAtOnce = 64;
/** Time after which a stalled handshake no longer counts against the limit. */
const handshakeStalledMs = 1_000;

export function createPublicPort({ server, maxConnections, clients, headMs }: PublicPortOptions): PublicPort {
  const { sources } = clients;
  /** Client addresses from PROXY headers, by the peer's host:port. */
  const forwardedAddresses = new Map<string, string>();
  const connectionLimit = createConnectionLimit(maxConnections, sources);
  const listeners: Server[] = [];

  const handshakes = createHandshakeLimiter({
    maxInFlight: handshakesAtOnce,
    stalledMs: handshakeStalledMs,
    firstByteMs: headMs,
    sources,
    begin: (socket) => server.emit("connection", socket),
  });
  const accept = (socket: Socket) => {
    connectionLimit.add(socket);
    // TLS reports errors on its own socket.
    socket.on("error", () => socket.destroy());
    if (!clients.isTrusted(socket.remoteAddress ?? "")) return handshakes.add(socket);
    const peerAddress = peerAddressOf(socket);
    takeProxyHeader(socket, headMs).then(
      (address) => {
        if (address !== undefined) {
          forwardedAddresses.set(peerAddress, address);
          socket.once("close", () => forwardedAddresses.delete(peerAddress));
        }
        handshakes.add(socket);
      },
      () => socket.destroy(),
    );
  };
  // The server itself does not listen; this event makes Node check for slow HTTP/1.1 requests.
  server.emit("listening");
  server.on("secureConnection", ({ remoteAddress, remotePort }) =>
    handshakes.finish(peerAddressOf({ remoteAddress, remotePort })),
  );
  // Failed handshakes are not logged: clients cause them at will.
  server.on("tlsClientError", (_error, socket) => socket.destroy());

  return {
    openAt(at, { reusePort = false } = {}) {
      const listener = createServer(accept);
      listeners.push(listener);
      return listenAt(listener, at, { reusePort });
    },
    peerOf: (socket) => forwardedAddresses.get(peerAddressOf(socket)) ?? socket.remoteAddress ?? "",
    async stop() {
      await Promise.all(listeners.map((listener) => new Promise<void>((resolve) => listener.close(() => resolve()))));
    },
    destroyAll() {
      for (const socket of connectionLimit.all) socket.destroy();
    },
    close: () => connectionLimit.close(),
  };
}
