import type { ServerResponse } from "node:http";
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from "node:http2";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { RequestHandler } from "./exchange.ts";

export interface ServerOptions {
  readonly handler: RequestHandler;
  /** PEM, the whole chain in cert. */
  readonly key: string;
  readonly cert: string;
  /** At each address. */
  readonly maxConnections?: number;
}

/** The API on its port, of one address or several: TLS 1.2 and above, HTTP/1.1 and h2. */
export interface ApiServer {
  /** Resolves to the port when it listens there, besides where it does already. */
  listen(port: number, host: string): Promise<number>;
  /** New connections get the new certificate; those that are open stay. */
  renew(key: string, cert: string): void;
  /** Takes no new connection, lets requests end within graceMs, then cuts what is left. */
  close(graceMs: number): Promise<void>;
}

const maxHeaderBytes = 16 * 1024;
const headersTimeoutMs = 10_000;
const requestTimeoutMs = 60_000;
const idleTimeoutMs = 75_000;

/** Makes the server with limits on headers, slow requests, streams and connections. */
export function createApiServer({ handler, key, cert, maxConnections = 10_000 }: ServerOptions): ApiServer {
  const server: Http2SecureServer = createSecureServer({
    key,
    cert,
    allowHTTP1: true,
    minVersion: "TLSv1.2",
    handshakeTimeout: headersTimeoutMs,
    maxHeaderListPairs: 128,
    settings: { maxConcurrentStreams: 250, maxHeaderListSize: maxHeaderBytes, enablePush: false },
    http1Options: {
      maxHeaderSize: maxHeaderBytes,
      keepAliveTimeout: idleTimeoutMs,
      headersTimeout: headersTimeoutMs,
      requestTimeout: requestTimeoutMs,
    },
  } as Parameters<typeof createSecureServer>[0]);

  const sessions = new Set<ServerHttp2Session>();
  const sockets = new Set<Socket>();
  const listeners: Server[] = [];
  /** The newest answer of each connection that speaks HTTP/1.1. */
  const answers = new Map<Socket, ServerResponse>();
  let closing = false;

  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
    session.setTimeout(idleTimeoutMs, () => session.close());
    session.on("error", () => session.destroy());
    // Its connection was accepted before the end, and its handshake took longer.
    if (closing) session.close();
  });
  // A client that breaks off in its handshake is its own affair.
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  // The parser of HTTP/1.1 gave up before there was a request.
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    if (socket.writable && error.code !== "ECONNRESET") socket.end(refusalOf(error.code));
    else socket.destroy();
  });
  server.on("request", (request, response) => {
    if (request.httpVersionMajor === 1) {
      const { socket } = request;
      if (!answers.has(socket)) socket.once("close", () => answers.delete(socket));
      answers.set(socket, response as unknown as ServerResponse);
      if (closing) response.setHeader("connection", "close");
    }
    handler(request, response);
  });

  return {
    listen(port, host) {
      // A server listens once; it takes what others accepted as its own.
      const listener = listeners.length === 0 ? server : createServer((socket) => server.emit("connection", socket));
      listener.maxConnections = maxConnections;
      listeners.push(listener);
      return new Promise((resolve, reject) => {
        listener.once("error", reject);
        listener.listen(port, host, () => {
          listener.off("error", reject);
          resolve((listener.address() as AddressInfo).port);
        });
      });
    },
    renew: (newKey, newCert) => server.setSecureContext({ key: newKey, cert: newCert, minVersion: "TLSv1.2" }),
    async close(graceMs) {
      closing = true;
      const closed = listeners.map((listener) => new Promise<void>((resolve) => listener.close(() => resolve())));
      for (const session of sessions) session.close();
      for (const [socket, answer] of answers) {
        if (answer.writableFinished) socket.end();
        // It began before the end was known, so the client would keep the connection.
        else answer.once("finish", () => socket.end());
      }
      const cut = setTimeout(() => {
        for (const session of sessions) session.destroy();
        for (const socket of sockets) socket.destroy();
      }, graceMs);
      await Promise.all(closed);
      clearTimeout(cut);
    },
  };
}

/** A whole HTTP/1.1 answer for what could not be read as a request. */
function refusalOf(code: string | undefined): string {
  const slow = code === "ERR_HTTP_REQUEST_TIMEOUT";
  const large = code === "HPE_HEADER_OVERFLOW";
  const [status, reason] = slow
    ? [408, "Request Timeout"]
    : large
      ? [431, "Request Header Fields Too Large"]
      : [400, "Bad Request"];
  const title = slow ? "The request took too long" : large ? "The headers are too large" : "This is not HTTP";
  const body = JSON.stringify({
    type: "about:blank",
    title,
    status,
    detail: title,
    code: "invalid_request",
    errors: [],
  });
  const head = [
    "content-type: application/problem+json",
    `content-length: ${Buffer.byteLength(body)}`,
    "cache-control: no-store",
    "connection: close",
  ];
  return `HTTP/1.1 ${status} ${reason}\r\n${head.join("\r\n")}\r\n\r\n${body}`;
}
