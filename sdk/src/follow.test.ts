import { afterEach, describe, expect, test } from "vitest";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { ConnectionFailed, NotFound, Unauthenticated } from "./errors.ts";
import { follow } from "./follow.ts";
import { createTransport, type Transport } from "./transport.ts";

let server: Server | undefined;

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

/** A server that handles each connection with the next of these functions. */
async function serveStreams(connections: ((response: ServerResponse) => void)[]) {
  const requests: IncomingMessage[] = [];
  server = createServer((request, response) => {
    requests.push(request);
    connections.shift()?.(response);
  });
  await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const transport: Transport = createTransport({ baseUrl: `http://127.0.0.1:${port}` });
  return { transport, requests };
}

const stream = (response: ServerResponse) => response.writeHead(200, { "content-type": "text/event-stream" });

describe("follow", () => {
  test("resumes after a broken connection, and yields each entry once", async () => {
    const { transport, requests } = await serveStreams([
      (response) =>
        stream(response).end(`: following\n\ndata: 1\n\nid: a\ndata: 2\n\n: still here\n\ndata: 3\n\ndata: 4\n\n`),
      (response) => response.destroy(),
      (response) => response.writeHead(503).end(),
      (response) => {
        // In pieces, and within a character.
        const bytes = Buffer.from(`data: 3\n\ndata: 4\n\nid: b\ndata: "ü"\n\n`);
        stream(response).write(bytes.subarray(0, 29), () => response.end(bytes.subarray(29)));
      },
      (response) => stream(response).write(`data: 6\n\n`),
    ]);
    const seen: unknown[] = [];
    for await (const entry of follow(transport, "/x", { type: "t" })) {
      seen.push(entry);
      if (entry === 6) break;
    }
    expect(seen).toEqual([1, 2, 3, 4, "ü", 6]);
    expect(requests.map(({ headers }) => headers["last-event-id"])).toEqual([undefined, "a", "a", "a", "b"]);
    expect(requests[0]?.url).toBe("/x?type=t&follow=true");
  });

  test("yields an entry whose text has a line separator of Unicode, as JSON may", async () => {
    const { transport } = await serveStreams([(response) => stream(response).write(`data: "a\u2028b\u2029c"\n\n`)]);
    const entries = follow(transport, "/x", {});
    expect((await entries.next()).value).toBe("a\u2028b\u2029c");
    await entries.return();
  });

  test("fails immediately if the server was never reachable", async () => {
    const transport = createTransport({ baseUrl: "http://127.0.0.1:1" });
    await expect(follow(transport, "/x", {}).next()).rejects.toBeInstanceOf(ConnectionFailed);
  });

  test("ends with the signal's reason, and closes its connection", async () => {
    const controller = new AbortController();
    let closed = () => {};
    const disconnected = new Promise<void>((resolve) => (closed = resolve));
    const { transport } = await serveStreams([
      (response) => {
        response.once("close", closed);
        stream(response).write(`data: 1\n\n`);
      },
    ]);
    const reason = new Error("enough");
    const entries = follow(transport, "/x", {}, { signal: controller.signal });
    expect((await entries.next()).value).toBe(1);
    const next = entries.next();
    controller.abort(reason);
    await expect(next).rejects.toBe(reason);
    await disconnected;
  });

  test("throws an ApiError at the start or later", async () => {
    const problem = { type: "", title: "", status: 401, detail: "ended", instance: "", code: "c", errors: [] };
    const { transport } = await serveStreams([
      (response) => response.writeHead(404, { "content-type": "application/problem+json" }).end("{}"),
      (response) => stream(response).end(`data: 1\n\nevent: error\ndata: ${JSON.stringify(problem)}\n\n`),
    ]);
    await expect(follow(transport, "/x", {}).next()).rejects.toBeInstanceOf(NotFound);
    const entries = follow(transport, "/x", {});
    expect((await entries.next()).value).toBe(1);
    await expect(entries.next()).rejects.toBeInstanceOf(Unauthenticated);
  });
});
