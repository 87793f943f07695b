import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";

/** A request at a destination, its body after decompression by gzip. */
export interface ExportArrival {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Port of the sender's socket. */
  readonly remotePort: number;
}

/** Reply of a destination: a response, none at all, or the connection closed midway through one. */
export type ExportReply =
  | "never"
  | { readonly status: number; readonly body?: string; readonly headers?: Readonly<Record<string, string>> }
  | "cut";

export interface ExportReceiver {
  /** `http://127.0.0.1:<port>`. */
  readonly url: string;
  /** All requests, with any reply. */
  readonly arrivals: readonly ExportArrival[];
  /** Replaces the replies from now on. */
  reply(next: (arrival: ExportArrival) => ExportReply): void;
  close(): Promise<void>;
}

/** Starts a real HTTP server with scripted replies, on a given port for a restart. */
export async function startExportReceiver(
  first: (arrival: ExportArrival) => ExportReply,
  at = 0,
): Promise<ExportReceiver> {
  let reply = first;
  const arrivals: ExportArrival[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => void chunks.push(chunk));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const sent = Buffer.concat(chunks);
      const body = headers["content-encoding"] === "gzip" ? gunzipSync(sent) : sent;
      const arrival = { method, path: url, headers, body, remotePort: request.socket.remotePort ?? 0 };
      arrivals.push(arrival);
      const answer = reply(arrival);
      if (answer === "never") return;
      if (answer === "cut") return void request.socket.destroy();
      response.writeHead(answer.status, answer.headers ?? {}).end(answer.body ?? "");
    });
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(at, "127.0.0.1", resolve);
  await promise;
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    arrivals,
    reply: (next) => {
      reply = next;
    },
    close() {
      server.closeAllConnections();
      return new Promise((closed) => server.close(() => closed()));
    },
  };
}
