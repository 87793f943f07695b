import { afterEach, describe, expect, test } from "vitest";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { ConnectionFailed, Conflict, NotFound, Unavailable, ValidationFailed } from "./errors.ts";
import { createTransport, type Transport } from "./transport.ts";

let server: Server | undefined;

afterEach(() => void server?.close());

type Answer = { status: number; headers?: Record<string, string>; body?: object };

/** A server that gives these answers in turn, and what it was asked. */
async function answering(answers: Answer[]): Promise<{ transport: Transport; asked: IncomingMessage[] }> {
  const asked: IncomingMessage[] = [];
  server = createServer((request, response) => {
    asked.push(request);
    const { status, headers, body } = answers.shift() ?? { status: 500 };
    response.writeHead(status, {
      "content-type": status < 400 ? "application/json" : "application/problem+json",
      connection: "close",
      ...headers,
    });
    response.end(JSON.stringify(body ?? { code: `code_${status}`, detail: "why", status, errors: [] }));
  });
  await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    transport: createTransport({
      baseUrl: `http://127.0.0.1:${port}`,
      credentials: { kind: "basic", name: "n", secret: "ä" },
    }),
    asked,
  };
}

describe("transport", () => {
  test("credentials are UTF-8 and queries leave out what is undefined", async () => {
    const { transport, asked } = await answering([{ status: 200, body: { a: 1 } }]);
    expect(await transport.request("GET", "/x", { query: { a: "b c", b: undefined } })).toEqual({ a: 1 });
    expect(asked[0]?.url).toBe("/x?a=b+c");
    expect(asked[0]?.headers.authorization).toBe(`Basic ${Buffer.from("n:ä").toString("base64")}`);
  });

  test("a POST is sent again with the same key, and a change's revision goes with reads", async () => {
    const { transport, asked } = await answering([
      { status: 503 },
      { status: 202, headers: { "holdfast-revision": "7" }, body: {} },
      { status: 200, body: {} },
    ]);
    await transport.request("POST", "/x", { body: {} });
    await transport.request("GET", "/x");
    const [first, second, read] = asked.map((request) => request.headers);
    expect(first?.["idempotency-key"]).toMatch(/^[0-9a-f-]{36}$/);
    expect(second?.["idempotency-key"]).toBe(first?.["idempotency-key"]);
    expect([first?.["holdfast-revision"], read?.["holdfast-revision"]]).toEqual([undefined, "7"]);
  });

  test("errors are of a class by their status", async () => {
    const cases = [
      [404, NotFound],
      [409, Conflict],
      [422, Conflict],
      [400, ValidationFailed],
    ] as const;
    for (const [status, kind] of cases) {
      const { transport } = await answering([{ status }]);
      await expect(transport.request("GET", "/x")).rejects.toBeInstanceOf(kind);
    }
    const { transport, asked } = await answering([{ status: 503 }]);
    await expect(transport.request("POST", "/x", { single: true })).rejects.toBeInstanceOf(Unavailable);
    expect(asked).toHaveLength(1);
  });

  test("no server is a ConnectionFailed that names it", async () => {
    const transport = createTransport({ baseUrl: "http://127.0.0.1:1", credentials: { kind: "bearer", token: "t" } });
    const error = await transport.request("GET", "/x").catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ConnectionFailed);
    expect((error as Error).message).toContain("http://127.0.0.1:1 does not answer");
  });
});
