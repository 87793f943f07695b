import { rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { endpointsOf } from "./endpoint.ts";
import { listenAt } from "./open-listeners.ts";

/** Serves /metrics for operators at a Unix socket path or at host:port. */
export async function serveMetrics(at: string, metrics: { text(): Promise<string> }): Promise<Server> {
  const server = createServer((request, response) => {
    if (request.method !== "GET" || request.url !== "/metrics") {
      response.writeHead(404).end();
      return;
    }
    metrics.text().then(
      (text) => response.writeHead(200, { "content-type": "text/plain; version=0.0.4" }).end(text),
      () => response.writeHead(500).end(),
    );
  });
  const isPath = at.includes("/");
  if (isPath) await rm(at, { force: true });
  const [endpoint] = isPath ? [] : endpointsOf([at]);
  if (endpoint === undefined)
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject).listen(at, resolve);
    });
  else await listenAt(server, endpoint);
  return server;
}
