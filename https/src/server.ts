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
import { requestTargetOf } from "@holdfast/common/request-target.ts";
import { createSourceGroups } from "@holdfast/common/source-groups.ts";
import { type Certificates, createCertificates, type KeyPair, minVersion } from "./certificates.ts";
import { createPublicPort } from "./public-port.ts";
import type { HttpRequest, HttpResponse, RequestHandler } from "./request-handler.ts";
import { createStalledResponses } from "./stalled-responses.ts";

/** `key` and `cert` are the default certificate, for clients without a server name or with an unknown one. */
export interface ServerOptions extends KeyPair {
  readonly handler: RequestHandler;
  /** Logs each request whose handler failed. */
  readonly log: Pick<Log, "error">;
  /** Certificates by server name; by default all clients get `cert`. */
  readonly certificates?: Certificates;
  /**
   * Maximum number of connections. Above it, a new one closes the connection that is idle longest, of the source with
   * the most connections.
   */
  readonly maxConnections?: number;
  /**
   * Source groups, and trusted proxies whose PROXY headers are read. By default each address is a source and no header
   * is read.
   */
  readonly clients?: Pick<ClientAddresses, "sources" | "isTrusted">;
  /** Time in milliseconds after which a response that the client does not read is aborted. */
  readonly stallTimeoutMs?: number;
  /** Time in milliseconds for the TLS handshake, and for the head of an HTTP/1.1 request; 10 s by default. */
  readonly headTimeoutMs?: number;
}

/**
 * An HTTPS server for public ports: TLS 1.2 and above, HTTP/1.1 and HTTP/2. It bounds everything that a client
 * controls: connections and handshakes by source (`PublicPort`), headers, slow requests, concurrent requests of a
 * connection, control frames, and responses that are not read (`StalledResponses`).
 */
export interface ApiServer {
  /**
   * Listens on another endpoint; resolves with the port. With `reusePort` other processes of this user may listen on
   * the port too, and the kernel distributes connections among them.
   */
  listen(port: number, host: string, options?: { readonly reusePort?: boolean }): Promise<number>;
  /** Replaces the default certificate, for new connections. */
  renew(key: string, cert: string): void;
  /** Stops accepting connections, lets requests end within `graceMs`, then closes the remaining connections. */
  close(graceMs: number): Promise<void>;
}

const maxHeaderBytes = 16 * 1024;
const defaultHeadMs = 10_000;
const requestTimeoutMs = 60_000;
const idleTimeoutMs = 75_000;
/** Concurrent requests of a connection: HTTP/2 streams, or pipelined HTTP/1.1 requests. */
const maxStreams = 250;
/**
 * Maximum bytes of a request body that are read after the response; more than a handler that responds early accepts.
 */
const maxDrainBytes = 1 << 20;

/** Rate of control frames. A client pings every few seconds, or once per window of data, and sends SETTINGS once. */
const controlFramesPerSecond = 50;
const controlFramesBurst = 1_000;

/** Creates the server. */
export function createApiServer(options: ServerOptions): ApiServer {
  const {
    handler,
    log,
    key,
    cert,
    certificates = createCertificates(),
    maxConnections = 8_000,
    clients = { sources: createSourceGroups(), isTrusted: () => false },
    stallTimeoutMs = 60_000,
    headTimeoutMs = defaultHeadMs,
  } = options;
  const server: Http2SecureServer = createSecureServer({
    key,
    cert,
    SNICallback: (name, done) => done(null, certificates.find(name)),
    allowHTTP1: true,
    minVersion,
    handshakeTimeout: headTimeoutMs,
    maxHeaderListPairs: 128,
    settings: { maxConcurrentStreams: maxStreams, maxHeaderListSize: maxHeaderBytes, enablePush: false },
    http1Options: {
      maxHeaderSize: maxHeaderBytes,
      keepAliveTimeout: idleTimeoutMs,
      headersTimeout: headTimeoutMs,
      requestTimeout: requestTimeoutMs,
      // Node checks each 30 s by default, which would triple the timeout.
      connectionsCheckingInterval: headTimeoutMs / 2,
    },
  } as Parameters<typeof createSecureServer>[0]);

  const publicPort = createPublicPort({ server, maxConnections, clients, headTimeoutMs: headTimeoutMs });
  const sessions = new Set<ServerHttp2Session>();
  const stalledResponses = createStalledResponses(stallTimeoutMs);
  /** Newest response of each HTTP/1.1 connection. */
  const newestResponses = new Map<Socket, HttpResponse>();
  /** Number of pending requests of each HTTP/1.1 connection. */
  const pipelined = new WeakMap<Socket, number>();
  let closing = false;

  server.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
    session.setTimeout(idleTimeoutMs, () => session.close());
    session.on("error", () => session.destroy());
    // The connection was accepted before `close`, and its handshake ended after `close`.
    if (closing) session.close();
    limitControlFrames(session);
  });
  // The HTTP/1.1 parser failed before there was a request.
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    if (socket.writable && error.code !== "ECONNRESET") socket.end(refusalOf(error.code));
    else socket.destroy();
  });
  server.on("request", (request, response) => {
    stalledResponses.watch(response);
    if (request.httpVersionMajor === 2) drainBody(request as Http2ServerRequest);
    if (request.httpVersionMajor === 1) {
      const { socket } = request;
      if (!newestResponses.has(socket)) socket.once("close", () => newestResponses.delete(socket));
      newestResponses.set(socket, response);
      const waiting = (pipelined.get(socket) ?? 0) + 1;
      pipelined.set(socket, waiting);
      if (waiting > maxStreams) {
        socket.destroy();
        return;
      }
      response.once("close", () => pipelined.set(socket, (pipelined.get(socket) ?? 1) - 1));
      if (closing) response.setHeader("connection", "close");
    }
    respond(request, response, publicPort.peerOf(request.socket)).catch(() => response.destroy());
  });

  async function respond(request: HttpRequest, response: HttpResponse, peer: string): Promise<void> {
    if (!takeTarget(request, response)) return;
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
    listen: (port, host, listenOptions) => publicPort.openAt({ host, port }, listenOptions),
    renew: (newKey, newCert) => server.setSecureContext({ key: newKey, cert: newCert, minVersion }),
    async close(graceMs) {
      closing = true;
      const stopped = publicPort.stop();
      for (const session of sessions) session.close();
      for (const [socket, response] of newestResponses) {
        if (response.writableFinished) socket.end();
        // The response started before `close`, so the client would keep the connection open.
        else response.once("finish", () => socket.end());
      }
      const deadline = setTimeout(() => {
        for (const session of sessions) session.destroy();
        publicPort.destroyAll();
      }, graceMs);
      await stopped;
      clearTimeout(deadline);
      // The server itself never listened, which is the only error that it reports.
      server.close(() => undefined);
      stalledResponses.close();
      publicPort.close();
    },
  };
}

/**
 * Closes a session whose client floods it with PING and SETTINGS frames: each needs a response, and no other limit
 * counts them.
 */
function limitControlFrames(session: ServerHttp2Session): void {
  let remaining = controlFramesBurst;
  let since = performance.now();
  const count = () => {
    const now = performance.now();
    remaining = Math.min(controlFramesBurst, remaining + ((now - since) / 1_000) * controlFramesPerSecond) - 1;
    since = now;
    if (remaining < 0) session.destroy(undefined, 11 /* ENHANCE_YOUR_CALM */);
  };
  session.on("ping", count);
  session.on("remoteSettings", count);
}

/**
 * Normalizes the target of a request to a path that begins with a slash, and its host; false if it has sent an error
 * response. Handlers of a public port match paths, so a target of another form must not reach them.
 */
function takeTarget(request: HttpRequest, response: HttpResponse): boolean {
  const target = requestTargetOf(request);
  if (target.kind === "path") {
    request.url = target.path;
    if (target.host !== undefined) request.headers.host = target.host;
    return true;
  }
  // The body is not read.
  if (request.httpVersionMajor === 1) response.setHeader("connection", "close");
  if (target.kind === "server") {
    response.statusCode = 204;
    response.end();
    return false;
  }
  const body = problemText({ title: target.detail, status: 400, code: "invalid_request" });
  for (const [name, value] of Object.entries(problemHeaders(body))) response.setHeader(name, value);
  response.statusCode = 400;
  response.end(body);
  return false;
}

/**
 * Reads and discards the remainder of a request body after the response, as Node does for HTTP/1.1. A client may
 * continue to send and waits for its flow-control window; a stream that exceeds the limit is reset.
 */
function drainBody({ stream }: Http2ServerRequest): void {
  stream.once("finish", () => {
    let remaining = maxDrainBytes;
    // A destroyed or full request stops reading its stream, and nothing else reads it.
    stream.removeAllListeners("data");
    stream.on("data", (chunk: Buffer) => {
      remaining -= chunk.length;
      if (remaining < 0) stream.close(8 /* CANCEL */);
    });
    stream.resume();
  });
}

/** Sends 500 with the id under which the error is logged; aborts a response that has started. */
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

/** A complete HTTP/1.1 response to bytes that are not a valid request. */
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
