import { request as callHttp, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer } from "node:https";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ClientAddresses } from "@holdfast/common/client-address.ts";
import { createSourceBuckets } from "@holdfast/common/concurrency/source-buckets.ts";
import type { Endpoint } from "@holdfast/common/endpoint.ts";
import type { Log } from "@holdfast/common/log.ts";
import { requestTargetOf } from "@holdfast/common/request-target.ts";
import type { DirectoryIdentity } from "@holdfast/feed/identity-directory.ts";
import { createPublicPort } from "@holdfast/https/public-port.ts";
import type { AccessTokens } from "./access-token.ts";
import { type Answer, refusal } from "./answer.ts";
import { NotInstalled, type RegistryProgram } from "./registry-program.ts";
import type { RepositoryUsage } from "./repository-usage.ts";
import { type TokenEndpointDeps, tokenAnswer } from "./token-endpoint.ts";

/**
 * The registry of images: the distribution protocol of OCI, by docker-registry behind this server, and the endpoint
 * where callers get tokens for it. This server has the platform's certificate, limits connections and callers, and
 * refuses images of an organization beyond its limit; docker-registry verifies each token itself.
 */
export interface RegistryServer {
  /** Replaces the certificate, for new connections. */
  setIdentity(identity: ServerIdentity): void;
  /** Ends all connections. */
  close(): Promise<void>;
}

type ServerIdentity = Pick<DirectoryIdentity, "key" | "certificate">;

export interface RegistryServerDeps extends TokenEndpointDeps {
  readonly listen: readonly Endpoint[];
  readonly identity: ServerIdentity;
  readonly clients: ClientAddresses;
  readonly tokens: AccessTokens;
  readonly program: Pick<RegistryProgram, "use" | "markGarbage">;
  readonly usage: RepositoryUsage;
  readonly monotonicMs: () => number;
  readonly log: Log;
}

/** Time in milliseconds for a TLS handshake, and for the head of a request. */
const headTimeoutMs = 10_000;
/** Time without a byte: the first request may wait for the image with docker-registry, and large layers are hashed. */
const idleTimeoutMs = 5 * 60_000;
const maxConnections = 500;
/** Bytes beyond an organization's limit that are read, and not stored, before the connection is closed. */
const maxDiscardedBytes = 64 << 20;
/** Rate of requests for tokens of one source: each may verify a password. */
const tokenRate = { perSecond: 10, burst: 100 };
/** Headers of one connection, which a proxy does not forward (RFC 9110, section 7.6.1). */
const hopHeaders = [
  "connection",
  "keep-alive",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "expect",
];
const writes = ["POST", "PUT", "PATCH"];

export async function startRegistryServer(deps: RegistryServerDeps): Promise<RegistryServer> {
  const { clients, program, tokens, usage, log } = deps;
  const tokenRequests = createSourceBuckets({ ...tokenRate, sources: clients.sources }, deps.monotonicMs);

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const target = requestTargetOf(request);
    const url = target.kind === "path" ? URL.parse(target.path, "https://registry") : null;
    if (url === null) return respond(request, response, refusal(400, "UNSUPPORTED", "the URL is invalid"));
    const source = clients.addressOf(publicPort.peerOf(request.socket), request);
    if (/^\/auth\/token\/?$/.test(url.pathname)) return issueToken(request, response, url, source);
    if (!/^\/v2(\/|$)/.test(url.pathname)) return respond(request, response, refusal(404, "UNSUPPORTED", "not found"));
    try {
      await program.use((socket) => forward(request, response, { socket, url, source }));
    } catch (error) {
      if (!(error instanceof NotInstalled)) throw error;
      respond(request, response, refusal(503, "UNAVAILABLE", error.message));
    }
  }

  async function issueToken(request: IncomingMessage, response: ServerResponse, url: URL, source: string) {
    if (request.method !== "GET") return respond(request, response, refusal(405, "UNSUPPORTED", "only GET is allowed"));
    const { waitS } = tokenRequests.take(source);
    if (waitS > 0) {
      const { status, body } = refusal(429, "TOOMANYREQUESTS", "too many requests for tokens");
      return respond(request, response, { status, body, headers: { "retry-after": String(Math.ceil(waitS)) } });
    }
    const { authorization } = request.headers;
    respond(request, response, await tokenAnswer({ query: url.searchParams, authorization, source }, deps));
  }

  async function forward(
    request: IncomingMessage,
    response: ServerResponse,
    { socket, url, source }: { readonly socket: string; readonly url: URL; readonly source: string },
  ): Promise<void> {
    const { method = "" } = request;
    const namespace = writes.includes(method) ? writtenNamespace(request) : undefined;
    let remaining = namespace === undefined ? Infinity : await usage.remaining(namespace);
    const refuseSize = () =>
      respond(request, response, refusal(507, "DENIED", "the organization's images have their maximum size"));
    if (remaining <= 0) return refuseSize();
    const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => !hopHeaders.includes(name)));
    const upstream = callHttp({
      socketPath: socket,
      method,
      path: `${url.pathname}${url.search}`,
      headers: { ...headers, "x-forwarded-proto": "https", "x-forwarded-for": source },
    });
    const answered = Promise.withResolvers<IncomingMessage | undefined>();
    upstream.once("response", answered.resolve);
    upstream.on("error", answered.reject);
    response.once("close", () => upstream.destroy());
    const counted = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        remaining -= chunk.length;
        if (namespace !== undefined) usage.add(namespace, chunk.length);
        if (remaining >= 0) return done(null, chunk);
        answered.resolve(undefined);
        upstream.destroy();
        // Most clients read a response only after they have sent the body.
        if (remaining < -maxDiscardedBytes && !response.headersSent) refuseSize();
        done();
      },
      flush(done) {
        if (remaining < 0 && !response.headersSent) refuseSize();
        done();
      },
    });
    // A pipeline would close the client's connection with the first error, before it reads the response.
    request.pipe(counted).pipe(upstream);
    const answer = await answered.promise;
    if (answer === undefined) return;
    const { statusCode = 502 } = answer;
    if (method === "DELETE" && statusCode === 202) await program.markGarbage();
    const forwarded = Object.entries(answer.headers).filter(([name]) => !hopHeaders.includes(name));
    response.writeHead(statusCode, {
      ...Object.fromEntries(forwarded),
      ...(!request.complete && { connection: "close" }),
    });
    await pipeline(answer, response);
    if (!request.complete) request.destroy();
  }

  /**
   * The namespace that a request with a valid token writes to; docker-registry refuses all others. All repositories of
   * a token have the same one, so that the spelling of the path does not matter.
   */
  function writtenNamespace({ headers }: IncomingMessage): string | undefined {
    const [scheme = "", token = ""] = (headers.authorization ?? "").split(" ");
    const claims = scheme.toLowerCase() === "bearer" ? tokens.verify(token) : undefined;
    return claims?.access[0]?.name.split("/")[0];
  }

  const onRequest = (request: IncomingMessage, response: ServerResponse) => {
    serve(request, response).catch((error: unknown) => {
      if (!request.destroyed) log.error("request failed", { method: request.method, error });
      if (response.headersSent) response.destroy();
      else respond(request, response, refusal(500, "UNKNOWN", "the registry failed; try again"));
    });
  };
  const server = createServer({ ...tlsOptions(deps.identity), handshakeTimeout: headTimeoutMs }, onRequest);
  // Layers may be large; a connection without any progress ends by its timeout.
  server.requestTimeout = 0;
  server.headersTimeout = headTimeoutMs;
  server.setTimeout(idleTimeoutMs);
  const publicPort = createPublicPort({ server, maxConnections, clients, headTimeoutMs });
  for (const at of deps.listen) await publicPort.openAt(at);

  return {
    setIdentity: (next) => server.setSecureContext(tlsOptions(next)),
    async close() {
      const stopped = publicPort.stop();
      publicPort.destroyAll();
      publicPort.close();
      server.closeAllConnections();
      server.close();
      await stopped;
    },
  };
}

function tlsOptions({ key, certificate }: ServerIdentity) {
  return { key, cert: certificate, minVersion: "TLSv1.2" as const };
}

/** Sends an answer of the front itself. Closes the connection if the request has a body, which is not read. */
function respond(request: IncomingMessage, response: ServerResponse, { status, headers, body }: Answer): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(text)),
    "cache-control": "no-store",
    ...(!request.complete && { connection: "close" }),
    ...headers,
  });
  response.end(text);
}
