import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A received delivery. */
export interface Received {
  readonly at: number;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The raw bytes. */
  readonly body: string;
}

export interface WebhookReceiver {
  /** `http://127.0.0.1:<port>`. */
  readonly url: string;
  readonly received: Received[];
  close(): Promise<void>;
}

export type Respond = (response: ServerResponse, received: Received) => void;

/** A real HTTP server that stores its requests; it responds with 200 by default. */
export async function startWebhookReceiver(
  respond: Respond = (response) => void response.end("taken"),
): Promise<WebhookReceiver> {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => void chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString("utf8");
      const delivery = { at: Date.now(), path: request.url ?? "", headers: request.headers, body };
      received.push(delivery);
      respond(response, delivery);
    });
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    received,
    close() {
      server.closeAllConnections();
      return new Promise((closed) => server.close(() => closed()));
    },
  };
}
