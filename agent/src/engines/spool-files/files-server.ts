import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { TLSSocket } from "node:tls";
import { listenAt } from "@holdfast/common/open-listeners.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import type { SpoolFiles } from "./spool-files.ts";

interface FilesServerOptions {
  readonly address: string;
  readonly port: number;
  /** Key and certificate of this member, PEM. */
  readonly identity: string;
  /** Authority of the members' certificates, PEM. */
  readonly authority: string;
  /** Common name of the only clients. */
  readonly client: string;
  readonly files: SpoolFiles;
}

const connectionLimit = 32;
/** The client waits for its store between two requests. */
const idleMs = 120_000;

/**
 * Serves the files of a backup to the member that stores it (files-client.ts), which has a certificate of the members'
 * authority.
 */
export async function startFilesServer(options: FilesServerOptions): Promise<Server> {
  const { address, port, identity, authority, client, files } = options;
  const tls = { key: identity, cert: identity, ca: authority, requestCert: true, rejectUnauthorized: true };
  const server = createServer({ ...tls, minVersion: "TLSv1.3" }, (request, response) => {
    const { subject } = (request.socket as TLSSocket).getPeerCertificate();
    if (subject?.CN !== client) {
      response.writeHead(403).end();
      return;
    }
    respond(files, request, response).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else response.writeHead(hasCode(error, "ENOENT") ? 404 : 500).end(error instanceof Error ? error.message : "");
    });
  });
  server.maxConnections = connectionLimit;
  server.keepAliveTimeout = idleMs;
  await listenAt(server, { host: address, port });
  return server;
}

async function respond(files: SpoolFiles, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? "/", "https://member");
  const path = searchParams.get("path") ?? "";
  const number = Number(searchParams.get("bytes") ?? 0);
  const ended = new AbortController();
  response.once("close", () => ended.abort());
  const { signal } = ended;
  switch (`${request.method} ${pathname}`) {
    case "GET /files":
      response.end(JSON.stringify(await files.list(signal)));
      return;
    case "GET /limit":
      response.end(JSON.stringify(await files.limit(signal)));
      return;
    case "GET /file": {
      const parts = files.read(path, number, signal);
      // Before the status, which an absent file determines.
      const first = await parts.next();
      if (first.done !== true) response.write(first.value);
      await pipeline(Readable.from(parts), response);
      return;
    }
    case "POST /release":
      await files.release(path, number, signal);
      response.end("null");
      return;
    case "DELETE /files":
      await files.remove(signal);
      response.end("null");
      return;
    default:
      response.writeHead(404).end();
  }
}
