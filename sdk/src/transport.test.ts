import { afterEach, describe, expect, test } from "vitest";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { ApiError, ConnectionFailed, Conflict, NotFound, RateLimited, TimedOut, ValidationFailed } from "./errors.ts";
import { parseExactly } from "./exact-json.ts";
import { listOf } from "./pages.ts";
import { createTransport, pathOf, type Transport, type TransportOptions } from "./transport.ts";

let server: Server | undefined;

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

type FakeResponse = { status: number; headers?: Record<string, string>; body?: object | string };

/** A server with these responses in order, then 500, and its requests. A function writes the response itself. */
async function serve(
  responses: (FakeResponse | ((response: ServerResponse) => void))[],
  options: Partial<TransportOptions> = {},
): Promise<{ transport: Transport; requests: IncomingMessage[] }> {
  const requests: IncomingMessage[] = [];
  server = createServer((request, response) => {
    requests.push(request);
    const next = responses.shift() ?? { status: 500 };
    if (typeof next === "function") return next(response);
    const { status, headers, body = { code: `code_${status}`, detail: "why", status, errors: [] } } = next;
    const type = status < 400 ? "application/json" : "application/problem+json";
    response.writeHead(status, { "content-type": type, connection: "close", ...headers });
    response.end(status === 204 ? undefined : typeof body === "string" ? body : JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const credentials = { kind: "basic", name: "n", secret: "ä" } as const;
  return { transport: createTransport({ baseUrl: `http://127.0.0.1:${port}/`, credentials, ...options }), requests };
}

const failure = (promise: Promise<unknown>): Promise<unknown> => promise.then(() => undefined).catch((error) => error);

describe("transport", () => {
  test("credentials are UTF-8, and queries skip undefined values", async () => {
    const { transport, requests } = await serve([{ status: 200, body: { a: 1 } }], { organization: "o" });
    expect(await transport.request("GET", "/x", { query: { a: "b c", b: undefined } })).toEqual({ a: 1 });
    expect(requests[0]?.url).toBe("/x?a=b+c");
    expect(requests[0]?.headers).toMatchObject({
      authorization: `Basic ${Buffer.from("n:ä").toString("base64")}`,
      "holdfast-organization": "o",
    });
  });

  test("another parser of responses keeps the digits of numbers", async () => {
    const body = '{"a":12345678901234567890}';
    const { transport } = await serve([{ status: 200, body }], { parse: parseExactly });
    expect(JSON.stringify(await transport.request("GET", "/x"))).toBe(body);
  });

  test("a POST is retried with the same key, and reads send the revision of the last change", async () => {
    const { transport, requests } = await serve([
      { status: 503 },
      { status: 202, headers: { "holdfast-revision": "7" }, body: {} },
      { status: 200, body: {} },
    ]);
    await transport.request("POST", "/x", { body: {} });
    await transport.request("GET", "/x");
    const [first, second, read] = requests.map((request) => request.headers);
    expect(first?.["idempotency-key"]).toMatch(/^[0-9a-f-]{36}$/);
    expect(second?.["idempotency-key"]).toBe(first?.["idempotency-key"]);
    expect([first?.["holdfast-revision"], read?.["holdfast-revision"]]).toEqual([undefined, "7"]);
    expect(read).not.toHaveProperty("idempotency-key");
  });

  test("a single request, and a client without retries, sends once", async () => {
    for (const [options, single] of [
      [{}, true],
      [{ retries: 0 }, false],
    ] as const) {
      const { transport, requests } = await serve([{ status: 503 }], options);
      await expect(transport.request("POST", "/x", { single, idempotencyKey: "mine" })).rejects.toBeInstanceOf(
        ApiError,
      );
      expect(requests.map(({ headers }) => headers["idempotency-key"])).toEqual(["mine"]);
    }
  });

  test("errors have a class by their status, also from proxies", async () => {
    const cases = [
      [400, ValidationFailed],
      [404, NotFound],
      [409, Conflict],
      [422, Conflict],
      [500, ApiError],
    ] as const;
    for (const [status, kind] of cases) {
      const { transport } = await serve([{ status }]);
      await expect(transport.request("GET", "/x")).rejects.toBeInstanceOf(kind);
    }
    const { transport } = await serve([{ status: 429, headers: { "retry-after": "60" }, body: "<html>" }]);
    const error = await failure(transport.request("GET", "/x"));
    expect(error).toBeInstanceOf(RateLimited);
    expect(error).toMatchObject({ status: 429, code: "unknown", retryAfterMs: 60_000, message: "HTTP 429" });
    const fields = [{ field: "name", pointer: "/name", code: "too_long", detail: "is too long" }];
    const invalid = await serve([{ status: 400, body: { code: "invalid_request", errors: fields } }]);
    expect(await failure(invalid.transport.request("POST", "/x"))).toMatchObject({ fields });
  });

  test("a retried DELETE with 404 is successful, a first one with 404 is an error", async () => {
    const cut = (response: ServerResponse) => void response.destroy();
    const worked = await serve([cut, { status: 404 }]);
    await worked.transport.request("DELETE", "/x", { absentIsSuccess: true });
    expect(worked.requests).toHaveLength(2);
    const never = await serve([{ status: 404 }]);
    await expect(never.transport.request("DELETE", "/x", { absentIsSuccess: true })).rejects.toBeInstanceOf(NotFound);
  });

  test("an unreachable server and an incomplete response are ConnectionFailed", async () => {
    const none = createTransport({ baseUrl: "http://127.0.0.1:1", retries: 0 });
    const error = await failure(none.request("GET", "/x"));
    expect(error).toBeInstanceOf(ConnectionFailed);
    expect((error as Error).message).toContain("http://127.0.0.1:1 does not respond");
    const half = (response: ServerResponse) => {
      response.writeHead(200, { "content-length": 100 });
      response.write("{", () => response.destroy());
    };
    const { transport } = await serve([half], { retries: 0 });
    await expect(transport.request("GET", "/x")).rejects.toBeInstanceOf(ConnectionFailed);
  });

  test("an attempt has a timeout, and a call rejects with its signal's reason", async () => {
    const silent = await serve([() => {}, () => {}], { retries: 0 });
    await expect(silent.transport.request("GET", "/x", { timeoutMs: 50 })).rejects.toBeInstanceOf(TimedOut);
    const controller = new AbortController();
    const reason = new Error("enough");
    const call = silent.transport.request("GET", "/x", { signal: controller.signal });
    controller.abort(reason);
    await expect(call).rejects.toBe(reason);
    const ended = createTransport({ baseUrl: "http://127.0.0.1:1", signal: controller.signal });
    await expect(ended.request("GET", "/x")).rejects.toBe(reason);
  });

  test("an outage after the first response is retried for its time, another error is not", async () => {
    const cut = (response: ServerResponse) => void response.destroy();
    const ok = { status: 200, body: {} };
    const proxy = { status: 502, headers: { "retry-after": "0" }, body: "<html>" };
    const outage = [cut, proxy, cut, cut];
    const restarted = await serve([ok, ...outage, ok], { retries: 1, outageMs: 60_000 });
    await restarted.transport.request("GET", "/x");
    expect(await restarted.transport.request("POST", "/x", { body: {} })).toEqual({});
    const keys = restarted.requests.slice(1).map(({ headers }) => headers["idempotency-key"]);
    expect([keys.length, new Set(keys).size]).toEqual([5, 1]);

    const wrong = await serve([...outage, ok], { retries: 1, outageMs: 60_000 });
    expect(await failure(wrong.transport.request("GET", "/x"))).toBeInstanceOf(ApiError);
    expect(wrong.requests).toHaveLength(2);
    const over = await serve([ok, ...outage, ok], { retries: 1, outageMs: 1 });
    await over.transport.request("GET", "/x");
    expect(await failure(over.transport.request("GET", "/x"))).toBeInstanceOf(ApiError);
    const refused = await serve([ok, { status: 503 }, { status: 503 }, ok], { retries: 1, outageMs: 60_000 });
    await refused.transport.request("GET", "/x");
    expect(await failure(refused.transport.request("GET", "/x"))).toMatchObject({ code: "code_503" });
  });

  test("redirects are not followed, because credentials are for one host", async () => {
    const { transport, requests } = await serve([{ status: 307, headers: { location: "/y" } }], { retries: 0 });
    await expect(transport.request("GET", "/x")).rejects.toBeInstanceOf(ConnectionFailed);
    expect(requests).toHaveLength(1);
  });

  test("names cannot change the path", () => {
    expect(pathOf("a", "b/c", "ü")).toBe("/a/b%2Fc/%C3%BC");
    for (const part of ["", ".", ".."]) expect(() => pathOf("a", part)).toThrow(TypeError);
  });
});

describe("a list", () => {
  test("is read page by page, as far as it is iterated", async () => {
    const page = (entries: number[], next_cursor: string | null) => ({ status: 200, body: { entries, next_cursor } });
    const { transport, requests } = await serve([page([1], "a"), page([], "b"), page([2, 3], null), page([4], "c")]);
    const list = listOf<number>(transport, "/x", "entries", { limit: 2 }, { f: "g" });
    expect(await list.toArray()).toEqual([1, 2, 3]);
    expect(requests.map(({ url }) => url)).toEqual([
      "/x?f=g&limit=2",
      "/x?f=g&limit=2&cursor=a",
      "/x?f=g&limit=2&cursor=b",
    ]);
    for await (const entry of list) {
      expect(entry).toBe(4);
      break;
    }
    expect(requests).toHaveLength(4);
  });

  test("that can be followed ends at has_more false", async () => {
    const { transport } = await serve([
      { status: 200, body: { events: [1], next_cursor: "a", has_more: true } },
      { status: 200, body: { events: [2], next_cursor: "b", has_more: false } },
    ]);
    const pages = listOf<number>(transport, "/x", "events").pages();
    expect((await pages.next()).value).toEqual({ entries: [1], nextCursor: "a" });
    expect((await pages.next()).value).toEqual({ entries: [2], nextCursor: null });
    expect((await pages.next()).done).toBe(true);
  });
});
