import { createServer as createHttpServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { type AddressInfo, createServer, type Server } from "node:net";
import { afterEach, expect, test } from "vitest";
import { type ProbeTarget, probeLiveness, probeReadiness } from "./readiness-probe.ts";

const servers: Pick<Server, "close">[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function listen(server: Server): Promise<ProbeTarget> {
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return { address: "127.0.0.1", port: (server.address() as AddressInfo).port, path: "", programPort: 3_000 };
}
const { signal } = new AbortController();
const refused = "No program responds on port 3000 at 0.0.0.0 (one that listens at 127.0.0.1 alone is not reached).";

test("a server is ready by its port, with any response, in HTTP/1.1 and HTTP/2", async () => {
  const requests: string[] = [];
  const http = createHttpServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    response.writeHead(404).end();
  });
  const target = await listen(http);
  expect(await probeReadiness(target, signal)).toBeUndefined();
  expect(await probeLiveness(target, signal)).toBeUndefined();
  expect(requests).toEqual(["OPTIONS *"]);
  expect(await probeReadiness(await listen(createHttp2Server()), signal)).toBeUndefined();
});

test("a network that accepts a connection and closes it later is not a program that is ready", async () => {
  // It is closed once the probe has connected and sent its request.
  const late = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.destroy());
  });
  expect(await probeReadiness(await listen(late), signal)).toBe(refused);
});

test("a connection that stays open without a byte is not a program that is ready", async () => {
  const silent = createServer((socket) => socket.on("error", () => undefined));
  const target = await listen(silent);
  expect(await probeReadiness(target, signal)).toBe(refused);
  expect(await probeLiveness(target, signal)).toBeUndefined();
});

test("a port that refuses connections is not ready", async () => {
  const server = createServer();
  const target = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  servers.pop();
  expect(await probeReadiness(target, signal)).toBe(refused);
  expect(await probeLiveness(target, signal)).toBe(refused);
  expect(await probeReadiness({ ...target, path: "/health" }, signal)).toBe(`/health does not respond. ${refused}`);
});
