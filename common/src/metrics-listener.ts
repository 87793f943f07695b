import { rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { endpointsOf } from "./endpoint.ts";

/** Serves /metrics at a socket of the file system or at host:port, for operators alone. */
export async function serveMetrics(at: string, metrics: { text(): Promise<string> }): Promise<Server> {
  const server = createServer((request, response) => {
    if (request.method !== "GET" || request.url !== "/metrics") return void response.writeHead(404).end();
    metrics.text().then(
      (text) => response.writeHead(200, { "content-type": "text/plain; version=0.0.4" }).end(text),
      () => response.writeHead(500).end(),
    );
  });
  const isPath = at.includes("/");
  if (isPath) await rm(at, { force: true });
  const [endpoint] = isPath ? [] : endpointsOf([at]);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    if (endpoint === undefined) server.listen(at, resolve);
    else server.listen(endpoint.port, endpoint.host, resolve);
  });
  return server;
}
