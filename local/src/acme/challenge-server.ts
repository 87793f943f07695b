import { createServer } from "node:http";
import type { Endpoint } from "@holdfast/common/endpoint.ts";
import { listenAt } from "@holdfast/common/open-listeners.ts";

const prefix = "/.well-known/acme-challenge/";
const connectionsMax = 64;

/** Responds to HTTP-01 challenges (RFC 8555, section 8.3) while an order is open, and to nothing else. */
export interface ChallengeServer {
  set(token: string, keyAuthorization: string): void;
  delete(token: string): void;
  close(): Promise<void>;
}

/** Rejects with the error of the system if the port is taken or not permitted. */
export async function openChallengeServer(at: Endpoint): Promise<ChallengeServer> {
  const responses = new Map<string, string>();
  const server = createServer({ requestTimeout: 5_000, headersTimeout: 5_000 }, ({ url = "" }, response) => {
    const body = url.startsWith(prefix) ? responses.get(url.slice(prefix.length)) : undefined;
    response.writeHead(body === undefined ? 404 : 200, { "content-type": "text/plain", connection: "close" });
    response.end(body ?? "");
  });
  server.maxConnections = connectionsMax;
  await listenAt(server, at);
  return {
    set(token, keyAuthorization) {
      responses.set(token, keyAuthorization);
    },
    delete(token) {
      responses.delete(token);
    },
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
}
