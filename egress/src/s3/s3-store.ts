import { randomUUID } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { signUrl } from "@holdfast/common/objects/signed-url.ts";
import { Agent, type Dispatcher, request } from "undici";
import { checkKey, ObjectExists, type ObjectFacts, type ObjectStore } from "@holdfast/common/objects/object-store.ts";
import type { S3Location } from "./s3-location.ts";

type Method = "GET" | "HEAD" | "PUT" | "DELETE";
type Response = Dispatcher.ResponseData;

const urlLifetimeS = 900;
const attemptsMax = 4;
const retryDelayMs = 300;

/** Objects of an S3 bucket. The store must support the header If-None-Match. */
export function createS3Store(location: S3Location, now: () => number): ObjectStore {
  const { bucketUrl, prefix, key: credential, ca, serverSideEncryption } = location;
  const dispatcher = new Agent({
    connect: ca === undefined ? {} : { ca },
    bodyTimeout: 60_000,
    headersTimeout: 60_000,
  });

  async function send(
    method: Method,
    path: string,
    options: { headers?: Record<string, string>; unsignedHeaders?: Record<string, string>; file?: string } = {},
  ): Promise<Response> {
    const { headers = {}, unsignedHeaders = {}, file } = options;
    for (let attempt = 1; ; attempt += 1) {
      try {
        const url = await signUrl(
          { method, url: `${bucketUrl}${path}`, headers },
          credential,
          urlLifetimeS,
          new Date(now()),
        );
        const body = file === undefined ? null : createReadStream(file);
        const response = await request(url, { method, headers: { ...headers, ...unsignedHeaders }, body, dispatcher });
        if (response.statusCode < 500 || attempt === attemptsMax) return response;
        await response.body.dump();
      } catch (error) {
        if (attempt === attemptsMax) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, retryDelayMs * 2 ** attempt));
    }
  }

  async function errorOf(response: Response, operation: string): Promise<Error> {
    const text = (await response.body.text()).slice(0, 300);
    return new Error(`the object store responded ${response.statusCode} to ${operation}: ${text}`);
  }

  async function head(key: string): Promise<ObjectFacts | undefined> {
    checkKey(key);
    const response = await send("HEAD", `/${prefix}${key}`);
    await response.body.dump();
    if (response.statusCode === 404) return undefined;
    if (response.statusCode !== 200)
      throw new Error(`the object store responded ${response.statusCode} to HEAD ${key}`);
    const { "content-length": length, "last-modified": modified } = response.headers;
    return { key, sizeBytes: Number(length), modifiedAt: Date.parse(String(modified)) };
  }

  return {
    async put(key, body, { ifAbsent = false, signal } = {}) {
      checkKey(key);
      // S3 needs the length first: the stream is written to a file, so that a broken stream is never uploaded.
      const directory = await mkdtemp(join(tmpdir(), "holdfast-object-"));
      try {
        const file = join(directory, randomUUID());
        await pipeline(Readable.from(body), createWriteStream(file, { mode: 0o600 }), { ...(signal && { signal }) });
        const { size } = await stat(file);
        const headers = {
          ...(ifAbsent && { "if-none-match": "*" }),
          ...(serverSideEncryption && { "x-amz-server-side-encryption": "AES256" }),
        };
        const response = await send("PUT", `/${prefix}${key}`, {
          headers,
          unsignedHeaders: { "content-length": String(size) },
          file,
        });
        if (response.statusCode === 412 || response.statusCode === 409) {
          await response.body.dump();
          throw new ObjectExists(key);
        }
        if (response.statusCode !== 200) throw await errorOf(response, `PUT ${key}`);
        await response.body.dump();
        return { key, sizeBytes: size, modifiedAt: now() };
      } finally {
        await rm(directory, { recursive: true, force: true });
      }
    },
    async get(key, range) {
      checkKey(key);
      if (range !== undefined && range.end <= range.start) {
        return (await head(key)) === undefined ? undefined : empty();
      }
      const unsignedHeaders = range === undefined ? {} : { range: `bytes=${range.start}-${range.end - 1}` };
      const response = await send("GET", `/${prefix}${key}`, { unsignedHeaders });
      if (response.statusCode === 200 || response.statusCode === 206) return response.body;
      if (response.statusCode !== 404) throw await errorOf(response, `GET ${key}`);
      await response.body.dump();
      return undefined;
    },
    head,
    async list(listedPrefix, { after = "", limit }) {
      const query = new URLSearchParams({
        "list-type": "2",
        prefix: prefix + listedPrefix,
        "max-keys": String(Math.min(limit, 1_000)),
      });
      if (after !== "") query.set("start-after", prefix + after);
      const response = await send("GET", `?${query}`);
      if (response.statusCode !== 200) throw await errorOf(response, `a list of ${listedPrefix}`);
      const text = await response.body.text();
      const objects = [...text.matchAll(/<Contents>(.*?)<\/Contents>/gs)].flatMap(([, entry = ""]) =>
        factsIn(entry, prefix),
      );
      return { objects, more: /<IsTruncated>true<\/IsTruncated>/.test(text) };
    },
    async delete(key) {
      checkKey(key);
      const response = await send("DELETE", `/${prefix}${key}`);
      if (response.statusCode !== 204 && response.statusCode !== 200 && response.statusCode !== 404)
        throw await errorOf(response, `DELETE ${key}`);
      await response.body.dump();
    },
  };
}

/** The facts in an entry of a list; none for a key without the prefix. Keys of Holdfast need no XML escapes. */
function factsIn(entry: string, prefix: string): ObjectFacts[] {
  const value = (name: string) => new RegExp(`<${name}>([^<]*)</${name}>`).exec(entry)?.[1] ?? "";
  const key = value("Key");
  if (!key.startsWith(prefix)) return [];
  return [
    { key: key.slice(prefix.length), sizeBytes: Number(value("Size")), modifiedAt: Date.parse(value("LastModified")) },
  ];
}

async function* empty(): AsyncGenerator<Buffer> {
  // The range is empty.
}
