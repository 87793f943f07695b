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
  /**
   * Maximum number of connections. Above it, a new one closes the connection that is idle longest, of the source with
   * the most connections.
   */
  readonly maxConnections: number;
  /** Source groups, and trusted proxies whose PROXY headers are read. */
  readonly clients: Pick<ClientAddresses, "sources" | "isTrusted">;
  /** Time in milliseconds for a PROXY header and for the first byte of a handshake. */
  readonly headTimeoutMs: number;
}

/**
 * A public port before TLS. It limits connections by source, reads PROXY headers of trusted proxies, and queues TLS
 * handshakes by source.
 */
export interface PublicPort {
  /** Listens on another endpoint; resolves with the port. */
  openAt(at: Endpoint, options?: { readonly reusePort?: boolean }): Promise<number>;
  /** Address of the peer, or of the client that a trusted proxy named. */
  peerOf(socket: Pick<Socket, "remoteAddress" | "remotePort">): string;
  /** Stops accepting connections; resolves when all have closed. */
  stop(): Promise<void>;
  /** Closes all connections immediately. */
  destroyAll(): void;
  close(): void;
}

/** Maximum number of concurrent handshakes: enough to use one CPU, since each takes 1 to 2 ms of it. */
const maxHandshakesInFlight = 64;
/** Time after which a stalled handshake no longer counts against the limit. */
const handshakeStallMs = 1_000;

export function createPublicPort({ server, maxConnections, clients, headTimeoutMs }: PublicPortOptions): PublicPort {
  const { sources } = clients;
  /** Client addresses from PROXY headers, by the peer's host:port. */
  const forwardedAddresses = new Map<string, string>();
  const connectionLimit = createConnectionLimit(maxConnections, sources);
  const listeners: Server[] = [];

  const handshakes = createHandshakeLimiter({
    maxInFlight: maxHandshakesInFlight,
    stallTimeoutMs: handshakeStallMs,
    firstByteMs: headTimeoutMs,
    sources,
    begin: (socket) => server.emit("connection", socket),
  });
  const accept = (socket: Socket) => {
    connectionLimit.add(socket);
    // TLS reports errors on its own socket.
    socket.on("error", () => socket.destroy());
    if (!clients.isTrusted(socket.remoteAddress ?? "")) return handshakes.add(socket);
    const peerAddress = peerAddressOf(socket);
    takeProxyHeader(socket, headTimeoutMs).then(
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
  // Failed handshakes are not logged, because a client without a credential can cause them.
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
