import { randomUUID } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { signUrl, type StoreKey } from "@holdfast/common/objects/signed-url.ts";
import { Agent, type Dispatcher, request } from "undici";
import { checkKey, ObjectExists, type ObjectFacts, type ObjectStore } from "@holdfast/common/objects/object-store.ts";

export interface S3Place {
  /** URL of the bucket, path style, without a slash at its end. */
  readonly bucketUrl: string;
  /** Prefix of all keys, empty or ending with a slash. */
  readonly prefix: string;
  readonly key: StoreKey;
  /** PEM of authorities to trust; undefined for Node's own list. */
  readonly ca: string | undefined;
  readonly serverSideEncryption: boolean;
  readonly now: () => number;
}

type Method = "GET" | "HEAD" | "PUT" | "DELETE";
type Answer = Dispatcher.ResponseData;

const signedForS = 900;
const tries = 4;
const retryMs = 300;

/** Objects of an S3 bucket. The store has to know If-None-Match. */
export function createS3Store(place: S3Place): ObjectStore {
  const { bucketUrl, prefix, key: credential, ca, serverSideEncryption, now } = place;
  const dispatcher = new Agent({
    connect: ca === undefined ? {} : { ca },
    bodyTimeout: 60_000,
    headersTimeout: 60_000,
  });

  async function send(
    method: Method,
    path: string,
    options: { headers?: Record<string, string>; plain?: Record<string, string>; file?: string } = {},
  ): Promise<Answer> {
    const { headers = {}, plain = {}, file } = options;
    for (let tried = 1; ; tried += 1) {
      try {
        const url = await signUrl(
          { method, url: `${bucketUrl}${path}`, headers },
          credential,
          signedForS,
          new Date(now()),
        );
        const body = file === undefined ? null : createReadStream(file);
        const answer = await request(url, { method, headers: { ...headers, ...plain }, body, dispatcher });
        if (answer.statusCode < 500 || tried === tries) return answer;
        await answer.body.dump();
      } catch (error) {
        if (tried === tries) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, retryMs * 2 ** tried));
    }
  }

  async function refused(answer: Answer, what: string): Promise<Error> {
    const words = (await answer.body.text()).slice(0, 300);
    return new Error(`the object store answered ${answer.statusCode} to ${what}: ${words}`);
  }

  async function head(key: string): Promise<ObjectFacts | undefined> {
    checkKey(key);
    const answer = await send("HEAD", `/${prefix}${key}`);
    await answer.body.dump();
    if (answer.statusCode === 404) return undefined;
    if (answer.statusCode !== 200) throw new Error(`the object store answered ${answer.statusCode} to HEAD ${key}`);
    const { "content-length": length, "last-modified": modified } = answer.headers;
    return { key, sizeBytes: Number(length), modifiedAt: Date.parse(String(modified)) };
  }

  return {
    async put(key, body, { ifAbsent = false, signal } = {}) {
      checkKey(key);
      // S3 needs the length first: a stream goes to a file before the upload, so that a broken stream never gets there.
      const directory = await mkdtemp(join(tmpdir(), "holdfast-object-"));
      try {
        const file = join(directory, randomUUID());
        await pipeline(Readable.from(body), createWriteStream(file, { mode: 0o600 }), { ...(signal && { signal }) });
        const { size } = await stat(file);
        const headers = {
          ...(ifAbsent && { "if-none-match": "*" }),
          ...(serverSideEncryption && { "x-amz-server-side-encryption": "AES256" }),
        };
        const answer = await send("PUT", `/${prefix}${key}`, {
          headers,
          plain: { "content-length": String(size) },
          file,
        });
        if (answer.statusCode === 412 || answer.statusCode === 409) {
          await answer.body.dump();
          throw new ObjectExists(key);
        }
        if (answer.statusCode !== 200) throw await refused(answer, `PUT ${key}`);
        await answer.body.dump();
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
      const plain = range === undefined ? {} : { range: `bytes=${range.start}-${range.end - 1}` };
      const answer = await send("GET", `/${prefix}${key}`, { plain });
      if (answer.statusCode === 200 || answer.statusCode === 206) return answer.body;
      if (answer.statusCode !== 404) throw await refused(answer, `GET ${key}`);
      await answer.body.dump();
      return undefined;
    },
    head,
    async list(below, { after = "", limit }) {
      const query = new URLSearchParams({
        "list-type": "2",
        prefix: prefix + below,
        "max-keys": String(Math.min(limit, 1_000)),
      });
      if (after !== "") query.set("start-after", prefix + after);
      const answer = await send("GET", `?${query}`);
      if (answer.statusCode !== 200) throw await refused(answer, `a list of ${below}`);
      const text = await answer.body.text();
      const objects = [...text.matchAll(/<Contents>(.*?)<\/Contents>/gs)].flatMap(([, entry = ""]) =>
        factsIn(entry, prefix),
      );
      return { objects, more: /<IsTruncated>true<\/IsTruncated>/.test(text) };
    },
    async delete(key) {
      checkKey(key);
      const answer = await send("DELETE", `/${prefix}${key}`);
      if (answer.statusCode !== 204 && answer.statusCode !== 200 && answer.statusCode !== 404)
        throw await refused(answer, `DELETE ${key}`);
      await answer.body.dump();
    },
  };
}

/** An entry of a list. Our keys have no character that XML escapes; entries with other keys are foreign. */
function factsIn(entry: string, prefix: string): ObjectFacts[] {
  const value = (name: string) => new RegExp(`<${name}>([^<]*)</${name}>`).exec(entry)?.[1] ?? "";
  const key = value("Key");
  if (!key.startsWith(prefix)) return [];
  return [
    { key: key.slice(prefix.length), sizeBytes: Number(value("Size")), modifiedAt: Date.parse(value("LastModified")) },
  ];
}

async function* empty(): AsyncGenerator<Buffer> {
  // Nothing is in the range.
}
