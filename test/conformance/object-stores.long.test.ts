import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { silentLog } from "@holdfast/common/log.ts";
import { ObjectExists, type ObjectStore } from "@holdfast/common/objects/object-store.ts";
import { directoryKey } from "@holdfast/common/objects/signed-url.ts";
import { openObjectStore } from "@holdfast/controller/kernel/objects/open-object-store.ts";
import type { UrlSigner } from "@holdfast/controller/kernel/objects/url-signer.ts";
import { startStoreServer } from "@holdfast/store/store-server.ts";
import { Agent, request } from "undici";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { type S3Program, s3Programs } from "@holdfast/testing/servers/s3-program.ts";
import { startS3Server } from "@holdfast/testing/servers/s3-server.ts";

interface StoreUnderTest {
  readonly objects: ObjectStore;
  readonly signer: UrlSigner;
  /** PEM of the authority of the server that serves the URLs. */
  readonly ca: string;
  close(): Promise<void>;
}

const servers = await s3Programs();

async function openDirectory(): Promise<StoreUnderTest> {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-stores-"));
  const [port = 0] = await freePorts(1);
  const secret = randomBytes(32).toString("hex");
  const keyFile = join(directory, "key");
  await writeFile(keyFile, secret);
  const { cert, key } = await createTestCertificate();
  const server = await startStoreServer({
    directory: join(directory, "objects"),
    key: directoryKey(secret),
    host: "127.0.0.1",
    port,
    identity: { certificate: cert, key },
    now: Date.now,
    monotonicMs: () => performance.now(),
    log: silentLog,
  });
  const settings = {
    objects: pathToFileURL(join(directory, "objects")).href,
    objectsKeyFile: keyFile,
    objectsEndpoint: `127.0.0.1:${port}`,
    objectsCa: "",
    objectsEncryption: "none",
  };
  const { objects, signer } = await openObjectStore(settings, { trustBundle: () => cert, now: Date.now });
  if (signer === undefined) throw new Error("a directory that is served has a signer");
  const close = async () => {
    await server.close();
    await rm(directory, { recursive: true, force: true });
  };
  return { objects, signer, ca: cert, close };
}

async function openS3(program: S3Program): Promise<StoreUnderTest> {
  const server = await startS3Server(program);
  const settings = {
    objects: server.url("some/prefix"),
    objectsKeyFile: server.keyFile,
    objectsEndpoint: "",
    objectsCa: server.caFile,
    objectsEncryption: "none",
  };
  const { objects, signer } = await openObjectStore(settings, { trustBundle: () => "", now: Date.now });
  if (signer === undefined) throw new Error("S3 has a signer");
  return { objects, signer, ca: await readFile(server.caFile, "utf8"), close: () => server.remove() };
}

describe.each([
  { name: "a directory", isThere: true, open: openDirectory },
  ...servers.map((program) => ({
    name: `a bucket of ${program.title}`,
    isThere: program.path !== undefined,
    open: () => openS3(program),
  })),
])("the object store in $name", ({ isThere, open }) => {
  let store: StoreUnderTest;
  let dispatcher: Agent;

  beforeAll(async () => {
    if (!isThere) return;
    store = await open();
    // Machines work so: they resolve no names, and dial the addresses that come with a URL.
    const [address = ""] = await store.signer.endpoint.addresses();
    const lookup = (_: string, __: unknown, found: (error: null, all: object[]) => void) =>
      found(null, [{ address, family: address.includes(":") ? 6 : 4 }]);
    dispatcher = new Agent({ connect: { ca: store.ca, lookup: lookup as never, servername: "localhost" } });
  });
  afterAll(async () => {
    await dispatcher?.close();
    await store?.close();
  });
  const it = test.skipIf(!isThere);

  async function* stream(...chunks: string[]): AsyncGenerator<Buffer> {
    for (const chunk of chunks) yield Buffer.from(chunk);
  }
  async function read(key: string, range?: { start: number; end: number }): Promise<string | undefined> {
    const found = await store.objects.get(key, range);
    return found && (await buffer(found)).toString();
  }

  it("returns an object as written, in full or by range, and overwrites it as a unit", async () => {
    const { objects } = store;
    expect(await objects.put("a/b/one", stream("hello ", "world"))).toMatchObject({ key: "a/b/one", sizeBytes: 11 });
    expect(await objects.head("a/b/one")).toMatchObject({ key: "a/b/one", sizeBytes: 11 });
    expect(await read("a/b/one")).toBe("hello world");
    expect(await read("a/b/one", { start: 6, end: 9 })).toBe("wor");
    expect(await read("a/b/one", { start: 3, end: 3 })).toBe("");
    await objects.put("a/b/one", stream("x"));
    expect(await read("a/b/one")).toBe("x");
    await objects.delete("a/b/one");
    expect(await read("a/b/one")).toBeUndefined();
  });

  it("returns no object that was not written, and accepts its deletion", async () => {
    expect(await read("none")).toBeUndefined();
    expect(await store.objects.head("none")).toBeUndefined();
    await store.objects.delete("none");
  });

  it("lets one of several writers of an absent object win", async () => {
    const { objects } = store;
    const writes = Array.from({ length: 8 }, (_, i) => objects.put("once", stream(`writer ${i}`), { ifAbsent: true }));
    const results = await Promise.allSettled(writes);
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const result of results) if (result.status === "rejected") expect(result.reason).toBeInstanceOf(ObjectExists);
  });

  it("has no object of an interrupted stream", async () => {
    async function* broken() {
      yield Buffer.from("half");
      throw new Error("broken");
    }
    await expect(store.objects.put("half", broken())).rejects.toThrow("broken");
    expect(await store.objects.head("half")).toBeUndefined();
  });

  it("lists by key, prefix and page", async () => {
    const keys = ["l/a-b", "l/a/1", "l/a/2", "l/b.c", "l/b/1", "lx/1"].toSorted();
    for (const key of keys.toReversed()) await store.objects.put(key, stream("x"));
    expect((await store.objects.list("l", { limit: 100 })).objects.map(({ key }) => key)).toEqual(keys);
    const paged: string[] = [];
    for (let more = true; more; ) {
      const after = paged.at(-1);
      const page = await store.objects.list("l/", { limit: 2, ...(after !== undefined && { after }) });
      paged.push(...page.objects.map(({ key }) => key));
      more = page.more;
    }
    expect(paged).toEqual(keys.filter((key) => key.startsWith("l/")));
  });

  it("serves signed URLs, each for its object, method and headers, and overwrites nothing", async () => {
    const { signer } = store;
    const send = async (url: string, method: "PUT" | "GET" | "HEAD", headers = {}) => {
      const body = method === "PUT" ? "bytes" : null;
      const response = await request(url, { method, headers, body, dispatcher });
      return { status: response.statusCode, text: await response.body.text() };
    };
    const put = await signer.sign({ method: "PUT", key: "signed/1" }, 600);
    expect((await send(put.url, "PUT")).status).toBeGreaterThanOrEqual(400);
    expect((await send(put.url.replace("signed/1", "signed/2"), "PUT", put.headers)).status).toBe(403);
    expect((await send(put.url, "PUT", put.headers)).status).toBe(200);
    expect((await send(put.url, "PUT", put.headers)).status).toBe(412);
    const get = await signer.sign({ method: "GET", key: "signed/1" }, 600);
    expect(await send(get.url, "GET")).toEqual({ status: 200, text: "bytes" });
    expect((await send(get.url, "PUT", put.headers)).status).toBe(403);
    const head = await signer.sign({ method: "HEAD", key: "signed/1" }, 600);
    expect((await send(head.url, "HEAD")).status).toBe(200);
    const over = await signer.sign({ method: "GET", key: "signed/1" }, -60);
    expect((await send(over.url, "GET")).status).toBeGreaterThanOrEqual(400);
  });
});
