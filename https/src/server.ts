import { randomUUID } from "node:crypto";
import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type ServerHttp2Session,
} from "node:http2";
import type { Socket } from "node:net";
import { CATALOG } from "@holdfast/common/errors.ts";
import type { ClientAddresses } from "@holdfast/common/client-address.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createSourceGroups } from "@holdfast/common/source-groups.ts";
import { type Certificates, createCertificates, type KeyPair, minVersion } from "./certificates.ts";
import { limitControl } from "./control-frames.ts";
import { createPortEntrance } from "./port-entrance.ts";
import type { HttpRequest, HttpResponse, RequestHandler } from "./request-handler.ts";
import { createUnreadAnswers } from "./unread-answers.ts";

/** `key` and `cert` are for clients that ask for no name, or for one that has no certificate of its own. */
export interface ServerOptions extends KeyPair {
  readonly handler: RequestHandler;
  /** Has one line of each request that the handler failed. */
  readonly log: Pick<Log, "error">;
  /** Of names that have their own; none when absent. */
  readonly certificates?: Certificates;
  /** Past it the longest idle connection of the source that has most is closed. */
  readonly maxConnections?: number;
  /** Sources, and proxies whose PROXY headers are believed; by default each address is a source, and no header is believed. */
  readonly clients?: Pick<ClientAddresses, "sources" | "isTrusted">;
  /** An answer of which nothing is read for so long is cut. */
  readonly unreadMs?: number;
  /** Time for the TLS handshake, and for the head of a request over HTTP/1.1; 10 s when absent. */
  readonly headMs?: number;
}

/** The API on its port, of one address or several: TLS 1.2 and above, HTTP/1.1 and h2. */
export interface ApiServer {
  /**
   * Resolves to the port when it listens there, besides where it does already. With `reusePort` other processes of this user may
   * listen there too, and the kernel shares out connections among them.
   */
  listen(port: number, host: string, options?: { readonly reusePort?: boolean }): Promise<number>;
  /** New connections get the new default certificate; those that are open stay. */
  renew(key: string, cert: string): void;
  /** Takes no new connection, lets requests end within graceMs, then cuts what is left. */
  close(graceMs: number): Promise<void>;
}

const maxHeaderBytes = 16 * 1024;
const usualHeadMs = 10_000;
const requestTimeoutMs = 60_000;
const idleTimeoutMs = 75_000;
/** Requests of a connection that are under way: streams over h2, and over HTTP/1.1 those that came before their turn. */
const streamsMax = 250;
/** More than the largest body that anything takes which refuses some before it has read them. */
const drainedBytes = 1 << 20;

/** Makes the server with limits on headers, slow requests, streams and connections. */
export function createApiServer(options: ServerOptions): ApiServer {
  const {
    handler,
    log,
    key,
    cert,
    certificates = createCertificates(),
    maxConnections = 8_000,
    clients = { sources: createSourceGroups(), isTrusted: () => false },
    unreadMs = 60_000,
    headMs = usualHeadMs,
  } = options;
  const server: Http2SecureServer = createSecureServer({
    key,
    cert,
    SNICallback: (name, done) => done(null, certificates.find(name)),
    allowHTTP1: true,
    minVersion,
    handshakeTimeout: headMs,
    maxHeaderListPairs: 128,
    settings: { maxConcurrentStreams: streamsMax, maxHeaderListSize: maxHeaderBytes, enablePush: false },
    http1Options: {
      maxHeaderSize: maxHeaderBytes,
      keepAliveTimeout: idleTimeoutMs,
      headersTimeout: headMs,
      requestTimeout: requestTimeoutMs,
      // Twice as often as what it looks for: Node looks each 30 s, and lets three times the time pass.
      connectionsCheckingInterval: headMs / 2,
    },
  } as Parameters<typeof createSecureServer>[0]);

  const entrance = createPortEntrance({ server, maxConnections, clients, headMs });
  const sessions = new Set<ServerHttp2Session>();
  const unread = createUnreadAnswers(unreadMs);
  /** The newest answer of each connection that speaks HTTP/1.1. */
  const answers = new Map<Socket, HttpResponse>();
  /** Requests of each such connection that are not answered. */
  const pipelined = new WeakMap<Socket, number>();
  let closing = false;

  server.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
    session.setTimeout(idleTimeoutMs, () => session.close());
    session.on("error", () => session.destroy());
    // Its connection was accepted before the end, and its handshake took longer.
    if (closing) session.close();
    limitControl(session);
  });
  // The parser of HTTP/1.1 gave up before there was a request.
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    if (socket.writable && error.code !== "ECONNRESET") socket.end(refusalOf(error.code));
    else socket.destroy();
  });
  server.on("request", (request, response) => {
    unread.watch(response);
    if (request.httpVersionMajor === 2) drain(request as Http2ServerRequest);
    if (request.httpVersionMajor === 1) {
      const { socket } = request;
      if (!answers.has(socket)) socket.once("close", () => answers.delete(socket));
      answers.set(socket, response);
      const waiting = (pipelined.get(socket) ?? 0) + 1;
      pipelined.set(socket, waiting);
      if (waiting > streamsMax) {
        socket.destroy();
        return;
      }
      response.once("close", () => pipelined.set(socket, (pipelined.get(socket) ?? 1) - 1));
      if (closing) response.setHeader("connection", "close");
    }
    answer(request, response, entrance.peerOf(request.socket)).catch(() => response.destroy());
  });

  async function answer(request: HttpRequest, response: HttpResponse, peer: string): Promise<void> {
    try {
      await handler(request, response, peer);
    } catch (error) {
      const instance = randomUUID();
      const [path = ""] = (request.url ?? "").split("?");
      log.error("request failed", { requestId: instance, method: request.method, path: path.slice(0, 200), error });
      sendFailure(response, instance);
    }
  }

  return {
    listen: (port, host, listening) => entrance.openAt({ host, port }, listening),
    renew: (newKey, newCert) => server.setSecureContext({ key: newKey, cert: newCert, minVersion }),
    async close(graceMs) {
      closing = true;
      const stopped = entrance.stop();
      for (const session of sessions) session.close();
      for (const [socket, answer] of answers) {
        if (answer.writableFinished) socket.end();
        // It began before the end was known, so the client would keep the connection.
        else answer.once("finish", () => socket.end());
      }
      const cut = setTimeout(() => {
        for (const session of sessions) session.destroy();
        entrance.destroyAll();
      }, graceMs);
      await stopped;
      clearTimeout(cut);
      // It never listened, which is all that it says of that.
      server.close(() => undefined);
      unread.close();
      entrance.close();
    },
  };
}

/**
 * Who was answered before all of the body was read may go on to send it: as over HTTP/1.1 it is read and thrown away, since a
 * client waits for room in its windows until then, and one that has no end is reset.
 */
function drain({ stream }: Http2ServerRequest): void {
  stream.once("finish", () => {
    let left = drainedBytes;
    // The request stops its stream once it is destroyed or full, and nobody reads it any more.
    stream.removeAllListeners("data");
    stream.on("data", (chunk: Buffer) => {
      left -= chunk.length;
      if (left < 0) stream.close(8 /* CANCEL */);
    });
    stream.resume();
  });
}

/** 500 with the id under which the log has the error; an answer that has begun is cut. */
function sendFailure(response: HttpResponse, instance: string): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  const { title, status } = CATALOG.INTERNAL;
  const body = problemText({ title, status, code: "internal", instance: `urn:uuid:${instance}` });
  for (const [name, value] of Object.entries({ ...problemHeaders(body), "request-id": instance }))
    response.setHeader(name, value);
  response.statusCode = status;
  response.end(body);
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
  const body = problemText({ title, status, code: "invalid_request" });
  const head = Object.entries({ ...problemHeaders(body), connection: "close" }).map((pair) => pair.join(": "));
  return `HTTP/1.1 ${status} ${reason}\r\n${head.join("\r\n")}\r\n\r\n${body}`;
}

function problemText(problem: {
  readonly title: string;
  readonly status: number;
  readonly code: string;
  readonly instance?: string;
}) {
  return JSON.stringify({ type: "about:blank", detail: problem.title, errors: [], ...problem });
}

function problemHeaders(body: string) {
  return {
    "content-type": "application/problem+json",
    "content-length": String(Buffer.byteLength(body)),
    "cache-control": "no-store",
  };
}
