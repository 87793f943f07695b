import { createServer as createPlainServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer } from "node:https";
import { pipeline } from "node:stream/promises";
import { type ClientAddresses, createClientAddresses } from "@holdfast/common/client-address.ts";
import type { Log } from "@holdfast/common/log.ts";
import { refusalOf, storeBucket, type StoreKey } from "@holdfast/common/objects/signed-url.ts";
import { createDirectoryStore } from "@holdfast/common/objects/directory-store.ts";
import { ObjectExists } from "@holdfast/common/objects/object-store.ts";
import { listenAt } from "@holdfast/common/open-listeners.ts";
import { createSourceBuckets } from "@holdfast/common/source-buckets.ts";
import type { DirectoryIdentity } from "@holdfast/feed/identity-directory.ts";
import { createPortEntrance } from "@holdfast/https/port-entrance.ts";

/** Serves objects of a directory to whoever has a signed URL, as S3 does: PUT of what is not there yet, GET, HEAD. Nothing else. */
export interface StoreServer {
  readonly port: number;
  /** From now on connections are met with this one. */
  setIdentity(identity: ServerIdentity): void;
  close(): Promise<void>;
}

export type ServerIdentity = Pick<DirectoryIdentity, "key" | "certificate">;

export interface StoreServerDeps {
  readonly directory: string;
  readonly key: StoreKey;
  readonly host: string;
  readonly port: number;
  /** Undefined: without TLS, for tests. */
  readonly identity: ServerIdentity | undefined;
  /** By default each address is a source. */
  readonly clients?: ClientAddresses;
  readonly now: () => number;
  readonly monotonicMs: () => number;
  readonly log: Log;
}

const largestObjectBytes = 256 << 20;
const quietMs = 60_000;
/** Time for the first word of a TLS handshake, for the handshake, and for the head of a request. */
const headMs = 10_000;
const maxConnections = 1_000;
/** Requests of one source without a good signature. */
const unsignedRate = { perSecond: 50, burst: 500 };

export async function startStoreServer(deps: StoreServerDeps): Promise<StoreServer> {
  const { directory, key, host, port, identity, now, log } = deps;
  const clients = deps.clients ?? createClientAddresses({ trustedProxies: [], balancers: [] });
  const objects = createDirectoryStore(directory);
  const unsigned = createSourceBuckets({ ...unsignedRate, sources: clients.sources }, deps.monotonicMs);

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", headers } = request;
    const address = clients.of(peerOf(request), request);
    // A signature costs time to check, so it is counted before.
    if (unsigned.take(address).waitS > 0) return refuse(request, response, 503, "SlowDown");
    const url = URL.parse(request.url ?? "/", `${identity === undefined ? "http" : "https"}://${headers.host ?? ""}`);
    const objectKey = url === null ? undefined : keyIn(url);
    if (url === null || objectKey === undefined) return refuse(request, response, 400, "InvalidURI");
    const plain = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
    const refusal = await refusalOf({ method, url: url.href, headers: plain }, key, now());
    if (refusal !== undefined || !url.pathname.startsWith(`/${storeBucket}/`)) {
      log.warn("request refused", { method, reason: refusal ?? "no such bucket" });
      return refuse(request, response, 403, `AccessDenied: ${refusal ?? "no such bucket"}`);
    }
    unsigned.giveBack(address);
    switch (method) {
      case "PUT":
        return put(objectKey, request, response);
      case "HEAD":
      case "GET": {
        const facts = await objects.head(objectKey);
        const body = method === "GET" && facts !== undefined ? await objects.get(objectKey) : undefined;
        if (facts === undefined) return answer(response, 404, "NoSuchKey");
        response.writeHead(200, {
          "content-length": String(facts.sizeBytes),
          "content-type": "application/octet-stream",
        });
        if (body === undefined) response.end();
        else await pipeline(body, response);
        return;
      }
      default:
        return answer(response, 405, "MethodNotAllowed");
    }
  }

  async function put(objectKey: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const expected = Number(request.headers["content-length"] ?? Number.NaN);
    if (Number.isNaN(expected)) return answer(response, 411, "MissingContentLength");
    if (expected > largestObjectBytes) return answer(response, 400, "EntityTooLarge");
    // What is stored stays as it is, whatever a URL says.
    if (request.headers["if-none-match"] !== "*") return answer(response, 400, "If-None-Match: * is missing");
    try {
      await objects.put(objectKey, wholly(request, expected), { ifAbsent: true });
    } catch (error) {
      if (!(error instanceof ObjectExists)) throw error;
      // The client is to read the answer, not a broken connection.
      request.resume();
      return answer(response, 412, "PreconditionFailed");
    }
    return answer(response, 200, "");
  }

  const onRequest = (request: IncomingMessage, response: ServerResponse) => {
    serve(request, response).catch((error: unknown) => {
      log.error("request failed", { method: request.method, error });
      if (response.headersSent) response.destroy();
      else answer(response, 500, "InternalError");
    });
  };
  const secure =
    identity === undefined ? undefined : createServer({ ...tlsOptions(identity), handshakeTimeout: headMs }, onRequest);
  const server = secure ?? createPlainServer(onRequest);
  server.requestTimeout = 0;
  server.headersTimeout = headMs;
  server.setTimeout(quietMs);
  const entrance = secure && createPortEntrance({ server: secure, maxConnections, clients, headMs });
  const peerOf = ({ socket }: IncomingMessage) => entrance?.peerOf(socket) ?? socket.remoteAddress ?? "";
  const listening = await (entrance?.openAt({ host, port }) ?? listenAt(server, { host, port }));

  return {
    port: listening,
    setIdentity: (next) => secure?.setSecureContext(tlsOptions(next)),
    async close() {
      const stopped = entrance?.stop();
      entrance?.destroyAll();
      entrance?.close();
      server.closeAllConnections();
      server.close();
      await stopped;
    },
  };
}

function tlsOptions({ key, certificate }: ServerIdentity) {
  return { key, cert: certificate, minVersion: "TLSv1.2" as const };
}

/** What follows the bucket in the path; undefined when that is not percent-encoded UTF-8. */
function keyIn({ pathname }: URL): string | undefined {
  try {
    return decodeURIComponent(pathname).slice(`/${storeBucket}/`.length);
  } catch {
    return undefined;
  }
}

/** A body that ends before its length leaves no object. */
async function* wholly(request: IncomingMessage, expected: number): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    yield chunk;
  }
  if (bytes !== expected) throw new Error(`the body ended at ${bytes} of ${expected} bytes`);
}

/** A connection with a body ends too: a body that nobody wants is not read. */
function refuse({ headers }: IncomingMessage, response: ServerResponse, status: number, words: string): void {
  const hasBody = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
  if (hasBody) response.setHeader("connection", "close");
  answer(response, status, words);
}

function answer(response: ServerResponse, status: number, words: string): void {
  response.writeHead(status, { "content-type": "text/plain" }).end(words);
}
