import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { text } from "node:stream/consumers";
import type { Log } from "@holdfast/common/log.ts";
import { signUrl } from "@holdfast/common/objects/signed-url.ts";
import { listenAt } from "@holdfast/common/open-listeners.ts";
import type { S3Location } from "@holdfast/egress/s3/s3-location.ts";
import { Agent, request as send } from "undici";

/**
 * The part of a bucket that has the images, for docker-registry, by S3's protocol on loopback. The proxy signs requests
 * with the credential of the store, so that docker-registry, which tenants reach, neither has the credential nor reads
 * or deletes other objects, such as backups. Names and certificates of the store are resolved and verified here.
 */
export interface BucketProxy {
  readonly endpoint: string;
  /** Credential for this proxy alone, new in each process. */
  readonly key: { readonly id: string; readonly secret: string };
  close(): Promise<void>;
}

export interface BucketProxyDeps {
  readonly location: S3Location;
  /** Prefix of the only keys that are reachable, with a trailing slash. */
  readonly prefix: string;
  readonly now: () => number;
  readonly log: Log;
  /** False while nothing may be deleted. */
  readonly mayDelete?: () => boolean;
}

const urlLifetimeS = 900;
const idleTimeoutMs = 5 * 60_000;
/** Largest body of a request to delete several objects. */
const maxDeletionBytes = 4 << 20;
/** Amazon's headers that are not part of the signature of a proxy's request. */
const ownHeaders = new Set(["x-amz-content-sha256", "x-amz-date", "x-amz-security-token"]);
const sentHeaders = ["content-type", "content-length", "content-md5", "range", "if-none-match"];
const hopHeaders = new Set(["connection", "keep-alive", "transfer-encoding"]);

export async function startBucketProxy({
  location,
  prefix,
  now,
  log,
  mayDelete = () => true,
}: BucketProxyDeps): Promise<BucketProxy> {
  const key = { id: randomBytes(16).toString("hex"), secret: randomBytes(32).toString("hex") };
  const bucket = new URL(location.bucketUrl).pathname.slice(1);
  const { ca } = location;
  const dispatcher = new Agent({
    connect: ca === undefined ? {} : { ca },
    bodyTimeout: idleTimeoutMs,
    headersTimeout: idleTimeoutMs,
  });

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "GET", headers } = request;
    const url = new URL(request.url ?? "/", "http://proxy");
    const isKnown = headers.authorization?.includes(` Credential=${key.id}/`) ?? false;
    const scope = isKnown ? scopeOf(method, url, headers["x-amz-copy-source"], { bucket, prefix }) : "none";
    if (scope === "none") return refuse(response);
    if ((scope === "deletion" || method === "DELETE") && !mayDelete()) return refuse(response);
    const hasBody = method === "PUT" || method === "POST";
    const deletion = scope === "deletion" ? await deletionOf(request, prefix) : undefined;
    if (scope === "deletion" && deletion === undefined) return refuse(response);
    const amazons = Object.entries(headers).filter(([name]) => name.startsWith("x-amz-") && !ownHeaders.has(name));
    const signedHeaders = Object.fromEntries(amazons) as Record<string, string>;
    const target = `${location.bucketUrl}${url.pathname.slice(1 + bucket.length)}${url.search}`;
    const signed = await signUrl(
      { method, url: target, headers: signedHeaders },
      location.key,
      urlLifetimeS,
      new Date(now()),
    );
    const others = Object.entries(headers).filter(([name]) => sentHeaders.includes(name));
    const answer = await send(signed, {
      method: method as "GET",
      headers: { ...(Object.fromEntries(others) as Record<string, string>), ...signedHeaders },
      body: hasBody ? (deletion ?? request) : null,
      dispatcher,
    });
    const forwarded = Object.entries(answer.headers).filter(([name]) => !hopHeaders.has(name));
    response.writeHead(answer.statusCode, Object.fromEntries(forwarded));
    await pipeline(answer.body, response);
  }

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      if (!request.destroyed) log.error("request to the object store failed", { method: request.method, error });
      // A store that does not respond is a temporary failure, which docker-registry tries again.
      if (response.headersSent) response.destroy();
      else response.writeHead(503, { connection: "close" }).end();
    });
  });
  server.requestTimeout = 0;
  server.setTimeout(idleTimeoutMs);
  const port = await listenAt(server, { host: "127.0.0.1", port: 0 });

  return {
    endpoint: `http://127.0.0.1:${port}`,
    key,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
      await dispatcher.destroy();
    },
  };
}

type Scope = "none" | "object" | "list" | "deletion";

/** The scope of a request: an object or a list of objects with the prefix, or the deletion of several objects. */
function scopeOf(
  method: string,
  url: URL,
  copySource: string | string[] | undefined,
  { bucket, prefix }: { readonly bucket: string; readonly prefix: string },
): Scope {
  const path = decodeURIComponent(url.pathname);
  if (copySource !== undefined) {
    const source = typeof copySource === "string" ? decodeURIComponent(copySource).replace(/^\//, "") : "";
    if (!isPlain(source) || !source.startsWith(`${bucket}/${prefix}`)) return "none";
  }
  if (path === `/${bucket}` || path === `/${bucket}/`) {
    const listed = `${url.searchParams.get("prefix") ?? ""}/`;
    if (method === "GET" && listed.startsWith(prefix)) return "list";
    return method === "POST" && url.search.replace(/=$/, "") === "?delete" ? "deletion" : "none";
  }
  return isPlain(path.slice(1)) && path.startsWith(`/${bucket}/${prefix}`) ? "object" : "none";
}

/** True for a path without empty and relative segments, and without characters that servers may decode again. */
function isPlain(path: string): boolean {
  return path.split("/").every((segment) => /^[A-Za-z0-9._-]+$/.test(segment) && !/^\.+$/.test(segment));
}

/** The body of a request to delete several objects; undefined if one of them has another prefix. */
async function deletionOf(request: IncomingMessage, prefix: string): Promise<string | undefined> {
  if (!(Number(request.headers["content-length"]) <= maxDeletionBytes)) return undefined;
  const body = await text(request);
  const keys = [...body.matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key = ""]) => key);
  const isScoped = keys.length > 0 && keys.every((key) => isPlain(key) && key.startsWith(prefix));
  // Every element whose name has Key was read: another spelling of it would hide a key from the check.
  const tags = body.match(/<[^<>]*Key[^<>]*>/g) ?? [];
  return isScoped && tags.length === 2 * keys.length ? body : undefined;
}

function refuse(response: ServerResponse): void {
  response.writeHead(403, { connection: "close" }).end();
}
