import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { silentLog } from "@holdfast/common/log.ts";
import { storeBucket } from "@holdfast/common/objects/signed-url.ts";
import { createUrlSigner, type UrlSigner } from "@holdfast/controller/kernel/objects/url-signer.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type StoreServer, startStoreServer } from "./store-server.ts";
import { inheritedNames } from "@holdfast/testing/hostile/inherited-names.ts";
import { partial } from "@holdfast/testing/partial.ts";

const key = { id: "holdfast", secret: randomBytes(32).toString("hex"), region: "local" };
let directory: string;
let server: StoreServer;
let signer: UrlSigner;
let now = Date.now();
const failures: unknown[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "holdfast-store-"));
  const log = { ...silentLog, error: (_: string, fields?: object) => void failures.push(fields) };
  server = await startStoreServer({
    directory,
    key,
    host: "127.0.0.1",
    port: 0,
    identity: undefined,
    now: () => now,
    monotonicMs: () => performance.now(),
    log,
  });
  signer = signerOf(key);
});
afterAll(async () => {
  await server.close();
  await rm(directory, { recursive: true, force: true });
});

function signerOf(own: typeof key): UrlSigner {
  return createUrlSigner({
    base: `http://127.0.0.1:${server.port}/${storeBucket}`,
    key: own,
    endpoint: { addresses: async () => ["127.0.0.1"], port: server.port, trustBundle: () => "" },
    serverSideEncryption: true,
    now: () => now,
  });
}

async function use(method: "PUT" | "GET" | "HEAD", object: string, body?: string, change = (url: string) => url) {
  const { url, headers } = await signer.sign({ method, key: object }, 3_600);
  const answer = await fetch(change(url), { method, headers, ...(body !== undefined && { body }) });
  return { status: answer.status, text: await answer.text(), length: answer.headers.get("content-length") };
}

test("an object is stored once and read unchanged", async () => {
  expect((await use("GET", "a/b/000001")).status).toBe(404);
  expect((await use("PUT", "a/b/000001", "hello")).status).toBe(200);
  expect(await use("GET", "a/b/000001")).toMatchObject({ status: 200, text: "hello" });
  expect(await use("HEAD", "a/b/000001")).toMatchObject({ status: 200, length: "5" });
  expect((await use("PUT", "a/b/000001", "other")).status).toBe(412);
  expect((await use("GET", "a/b/000001")).text).toBe("hello");
});

test("a URL is valid only for its object, method, headers, time and key", async () => {
  const put = await signer.sign({ method: "PUT", key: "c/1" }, 3_600);
  const status = async (method: string, url: string, headers: Record<string, string> = put.headers) =>
    (await fetch(url, { method, headers, ...(method === "PUT" && { body: "x" }) })).status;
  expect(await status("PUT", put.url.replace("c/1", "c/2"))).toBe(403);
  expect(await status("GET", put.url)).toBe(403);
  expect(await status("PUT", put.url, { "if-none-match": "*" })).toBe(403);
  expect(await status("PUT", put.url, { ...put.headers, "if-none-match": "abc" })).toBe(403);
  expect(await status("PUT", put.url.replace("X-Amz-Expires=3600", "X-Amz-Expires=36000"))).toBe(403);
  expect(await status("PUT", `http://127.0.0.1:${server.port}/${storeBucket}/c/1`)).toBe(403);
  const other = await signerOf({ ...key, secret: "other" }).sign({ method: "PUT", key: "c/1" }, 3_600);
  expect(await status("PUT", other.url)).toBe(403);
  const before = now;
  now += 3_601_000;
  expect(await status("PUT", put.url)).toBe(403);
  now = before;
  expect(await status("PUT", put.url)).toBe(200);
});

test("an incomplete body leaves no object", async () => {
  const { url, headers } = await signer.sign({ method: "PUT", key: "cut/1" }, 60);
  const cut = new AbortController();
  async function* half() {
    yield Buffer.from("half");
    cut.abort();
  }
  await expect(
    fetch(url, partial<RequestInit>({ method: "PUT", headers, body: half(), duplex: "half", signal: cut.signal })),
  ).rejects.toThrow();
  expect((await use("HEAD", "cut/1")).status).toBe(404);
});

/** A request with a raw request line and Host header. */
async function raw(line: string, host = "127.0.0.1"): Promise<string> {
  const socket = connect(server.port, "127.0.0.1");
  socket.end(`${line} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  return (await text(socket)).slice(0, 12);
}

test("malformed requests are refused without an error in the log", async () => {
  const signed = (name: string) =>
    `GET /${storeBucket}/a?X-Amz-Signature=a&X-Amz-Date=20990101T000000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=${name}`;
  expect(await raw(`GET /${storeBucket}/%zz`)).toBe("HTTP/1.1 400");
  expect(await raw(`GET /${storeBucket}/a`, "a b")).toBe("HTTP/1.1 400");
  expect(await raw("GET //")).toBe("HTTP/1.1 400");
  for (const target of ["http://[::1", "*", "?", "javascript:1"])
    expect(await raw(`GET ${target}`), target).toBe("HTTP/1.1 400");
  expect(await raw(`GET /${storeBucket}/a`, "a\r\nHost: b")).toBe("HTTP/1.1 400");
  for (const word of inheritedNames)
    for (const line of [
      `GET /${word}`,
      `GET /${storeBucket}/${word}`,
      `PROPFIND /${storeBucket}/${word}`,
      signed(word),
    ])
      expect(await raw(line), line).toBe("HTTP/1.1 403");
  expect(failures).toEqual([]);
});
