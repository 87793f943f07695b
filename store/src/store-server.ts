import { createServer as createPlainServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer } from "node:https";
import { pipeline } from "node:stream/promises";
import { type ClientAddresses, createClientAddresses } from "@holdfast/common/client-address.ts";
import type { Log } from "@holdfast/common/log.ts";
import { signatureFault, storeBucket, type StoreKey } from "@holdfast/common/objects/signed-url.ts";
import { createDirectoryStore } from "@holdfast/common/objects/directory-store.ts";
import { ObjectExists } from "@holdfast/common/objects/object-store.ts";
import { listenAt } from "@holdfast/common/open-listeners.ts";
import { requestTargetOf } from "@holdfast/common/request-target.ts";
import { createSourceBuckets } from "@holdfast/common/concurrency/source-buckets.ts";
import type { DirectoryIdentity } from "@holdfast/feed/identity-directory.ts";
import { createPublicPort } from "@holdfast/https/public-port.ts";

/**
 * Serves the objects of a directory by signed URLs, as S3 does: PUT of a new object, GET and HEAD.
 * docs/how-to/backups.md says how controllers and agents use it.
 */
export interface StoreServer {
  readonly port: number;
  /** Replaces the certificate, for new connections. */
  setIdentity(identity: ServerIdentity): void;
  close(): Promise<void>;
}

export type ServerIdentity = Pick<DirectoryIdentity, "key" | "certificate">;

export interface StoreServerDeps {
  readonly directory: string;
  readonly key: StoreKey;
  readonly host: string;
  readonly port: number;
  /** Undefined for plain HTTP in tests. */
  readonly identity: ServerIdentity | undefined;
  /** Client addresses; by default each address is a source. */
  readonly clients?: ClientAddresses;
  readonly now: () => number;
  readonly monotonicMs: () => number;
  readonly log: Log;
}

const maxObjectBytes = 256 << 20;
const idleTimeoutMs = 60_000;
/** Time in milliseconds for the first byte of a TLS handshake, for the handshake, and for the head of a request. */
const headTimeoutMs = 10_000;
const maxConnections = 1_000;
/** Rate of requests without a valid signature of one source. */
const unsignedRate = { perSecond: 50, burst: 500 };

export async function startStoreServer(deps: StoreServerDeps): Promise<StoreServer> {
  const { directory, key, host, port, identity, now, log } = deps;
  const clients = deps.clients ?? createClientAddresses({ trustedProxies: [], balancers: [] });
  const objects = createDirectoryStore(directory);
  const unsignedRequests = createSourceBuckets({ ...unsignedRate, sources: clients.sources }, deps.monotonicMs);

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", headers } = request;
    const address = clients.addressOf(peerOf(request), request);
    // Verifying a signature costs CPU time, so the request is counted first.
    if (unsignedRequests.take(address).waitS > 0) return refuse(request, response, 503, "SlowDown");
    const target = requestTargetOf(request);
    if (target.kind !== "path") return refuse(request, response, 400, "InvalidURI");
    const origin = `${identity === undefined ? "http" : "https"}://${target.host ?? headers.host ?? ""}`;
    const url = URL.parse(target.path, origin);
    const objectKey = url === null ? undefined : keyIn(url);
    if (url === null || objectKey === undefined) return refuse(request, response, 400, "InvalidURI");
    const plain = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
    const refusal = await signatureFault({ method, url: url.href, headers: plain }, key, now());
    if (refusal !== undefined || !url.pathname.startsWith(`/${storeBucket}/`)) {
      log.warn("request refused", { method, reason: refusal ?? "no such bucket" });
      return refuse(request, response, 403, `AccessDenied: ${refusal ?? "no such bucket"}`);
    }
    unsignedRequests.refund(address);
    switch (method) {
      case "PUT":
        return put(objectKey, request, response);
      case "HEAD":
      case "GET": {
        const facts = await objects.head(objectKey);
        const body = method === "GET" && facts !== undefined ? await objects.get(objectKey) : undefined;
        if (facts === undefined) return respond(response, 404, "NoSuchKey");
        response.writeHead(200, {
          "content-length": String(facts.sizeBytes),
          "content-type": "application/octet-stream",
        });
        if (body === undefined) response.end();
        else await pipeline(body, response);
        return;
      }
      default:
        return respond(response, 405, "MethodNotAllowed");
    }
  }

  async function put(objectKey: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const expected = Number(request.headers["content-length"] ?? Number.NaN);
    if (Number.isNaN(expected)) return respond(response, 411, "MissingContentLength");
    if (expected > maxObjectBytes) return respond(response, 400, "EntityTooLarge");
    // Stored objects are immutable, even for a valid URL.
    if (request.headers["if-none-match"] !== "*") return respond(response, 400, "If-None-Match: * is missing");
    try {
      await objects.put(objectKey, requireLength(request, expected), { ifAbsent: true });
    } catch (error) {
      if (!(error instanceof ObjectExists)) throw error;
      // Read the body, so that the client reads the response instead of a connection reset.
      request.resume();
      return respond(response, 412, "PreconditionFailed");
    }
    return respond(response, 200, "");
  }

  const onRequest = (request: IncomingMessage, response: ServerResponse) => {
    serve(request, response).catch((error: unknown) => {
      log.error("request failed", { method: request.method, error });
      if (response.headersSent) response.destroy();
      else respond(response, 500, "InternalError");
    });
  };
  const secure =
    identity === undefined
      ? undefined
      : createServer({ ...tlsOptions(identity), handshakeTimeout: headTimeoutMs }, onRequest);
  const server = secure ?? createPlainServer(onRequest);
  server.requestTimeout = 0;
  server.headersTimeout = headTimeoutMs;
  server.setTimeout(idleTimeoutMs);
  const publicPort = secure && createPublicPort({ server: secure, maxConnections, clients, headTimeoutMs });
  const peerOf = ({ socket }: IncomingMessage) => publicPort?.peerOf(socket) ?? socket.remoteAddress ?? "";
  const listening = await (publicPort?.openAt({ host, port }) ?? listenAt(server, { host, port }));

  return {
    port: listening,
    setIdentity: (next) => secure?.setSecureContext(tlsOptions(next)),
    async close() {
      const stopped = publicPort?.stop();
      publicPort?.destroyAll();
      publicPort?.close();
      server.closeAllConnections();
      server.close();
      await stopped;
    },
  };
}

function tlsOptions({ key, certificate }: ServerIdentity) {
  return { key, cert: certificate, minVersion: "TLSv1.2" as const };
}

/** The key after the bucket in the path; undefined if it is not percent-encoded UTF-8. */
function keyIn({ pathname }: URL): string | undefined {
  try {
    return decodeURIComponent(pathname).slice(`/${storeBucket}/`.length);
  } catch {
    return undefined;
  }
}

/** A body that ends before its declared length stores no object. */
async function* requireLength(request: IncomingMessage, expected: number): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    yield chunk;
  }
  if (bytes !== expected) throw new Error(`the body ended at ${bytes} of ${expected} bytes`);
}

/** Responds with an error. Closes the connection if the request has a body, which is not read. */
function refuse({ headers }: IncomingMessage, response: ServerResponse, status: number, text: string): void {
  const hasBody = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
  if (hasBody) response.setHeader("connection", "close");
  respond(response, status, text);
}

function respond(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { "content-type": "text/plain" }).end(text);
}
