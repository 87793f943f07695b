import { createHash } from "node:crypto";
import { Agent as HttpAgent, type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { ObjectMethod } from "./job.ts";
import type { PresignedUrl, PresignedUrlCache } from "./presigned-url-cache.ts";

/**
 * Client of the object store, by presigned URLs. Temporary failures are retried until the signal; permanent ones are
 * thrown.
 */
export interface StoreClient {
  /**
   * Resolves once the object is durable and `bytes` is no longer read; throws ObjectDiffers if another object exists
   * under the key.
   */
  put(key: string, bytes: Buffer, signal: AbortSignal): Promise<void>;
  /**
   * Undefined only if the store reports that the object does not exist. An interrupted body continues where it ended.
   */
  get(key: string, signal: AbortSignal): Promise<AsyncIterable<Buffer> | undefined>;
  /** Size of the object in bytes; undefined if it does not exist. */
  size(key: string, signal: AbortSignal): Promise<number | undefined>;
}

/** The store refuses the request permanently. */
export class StoreRefused extends Error {
  override readonly name: string = "StoreRefused";
}

/** The store repeatedly truncates an object. */
class StoreTruncates extends StoreRefused {}

/** Thrown if another object exists under the key: objects are write-once. */
export class ObjectDiffers extends StoreRefused {}

const idleTimeoutMs = 30_000;
const stepBytes = 256 << 10;
const firstRetryMs = 200;
const maxRetryMs = 10_000;
/** Number of consecutive refusals of new URLs that counts as permanent. */
const maxForbidden = 5;
/** Number of consecutive truncated responses without progress that counts as permanent. */
const maxTruncations = 5;

export function createStoreClient(
  urls: PresignedUrlCache,
  onFailure: (reason: string | undefined) => void,
): StoreClient {
  const http = new HttpAgent({ keepAlive: true, maxSockets: 8 });
  const https = new HttpsAgent({ keepAlive: true, maxSockets: 8 });

  function send(
    method: ObjectMethod,
    use: PresignedUrl,
    body: Buffer | undefined,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const url = new URL(use.url);
    const secure = url.protocol === "https:";
    const { trustBundle } = use.endpoint;
    const options = {
      method,
      headers: { ...use.headers, ...(body !== undefined && { "content-length": String(body.length) }) },
      lookup: lookupIn(use.endpoint.addresses),
      signal,
      ...(secure
        ? {
            agent: https,
            servername: isIP(url.hostname) === 0 ? url.hostname : "",
            ...(trustBundle !== "" && { ca: trustBundle }),
          }
        : { agent: http }),
    };
    return new Promise((resolve, reject) => {
      const call = (secure ? httpsRequest : httpRequest)(url, options, resolve);
      call.setTimeout(idleTimeoutMs, () =>
        call.destroy(new Error(`the store did not respond for ${idleTimeoutMs / 1000} s`)),
      );
      call.once("error", reject);
      if (body === undefined) call.end();
      else writeBody(call, body);
    });
  }

  /** Retries until the store responds with one of these statuses. */
  async function request(
    accepted: readonly number[],
    method: ObjectMethod,
    key: string,
    body: Buffer | undefined,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    let forbidden = 0;
    for (let tries = 0; ; tries += 1) {
      signal.throwIfAborted();
      const use = await urls.take(method, key, signal);
      let reason: string;
      try {
        const response = await send(method, use, body, signal);
        const status = response.statusCode ?? 0;
        if (accepted.includes(status)) {
          onFailure(undefined);
          return response;
        }
        const text = (await textOf(response)).slice(0, 300);
        reason = `the store responded ${status} to ${method} ${key}: ${text}`;
        forbidden = status === 403 || status === 401 ? forbidden + 1 : 0;
        const isFinal = status >= 400 && status < 500 && ![401, 403, 408, 409, 425, 429].includes(status);
        if (isFinal || forbidden >= maxForbidden) throw new StoreRefused(reason);
      } catch (error) {
        if (error instanceof StoreRefused) throw error;
        signal.throwIfAborted();
        reason = `the store does not respond: ${error instanceof Error ? error.message : String(error)}`;
      }
      await backOff(method, key, reason, tries, signal);
    }
  }

  async function backOff(method: ObjectMethod, key: string, reason: string, tries: number, signal: AbortSignal) {
    urls.drop(method, key);
    onFailure(reason);
    const maxDelayMs = Math.min(maxRetryMs, firstRetryMs * 2 ** Math.min(tries, 10));
    await sleep(maxDelayMs * (0.5 + Math.random() / 2), undefined, { signal });
  }

  /**
   * Body of a response. A truncated body is fetched again and continues after the bytes received. Objects never change.
   */
  async function* completeBody(response: IncomingMessage, key: string, signal: AbortSignal): AsyncGenerator<Buffer> {
    const expected = Number(response.headers["content-length"] ?? Number.NaN);
    let received = 0;
    let truncations = 0;
    for (let body: AsyncIterable<Buffer> = response; ; ) {
      let at = 0;
      let cause: unknown;
      try {
        for await (const chunk of body) {
          const newBytes = chunk.subarray(Math.max(0, received - at));
          at += chunk.length;
          if (at <= received) continue;
          received = at;
          truncations = 0;
          yield newBytes;
        }
        if (Number.isNaN(expected) || at === expected) return;
      } catch (error) {
        signal.throwIfAborted();
        cause = error;
      }
      const reason = `the store's response for ${key} ended at ${received} of ${expected} bytes`;
      if ((truncations += 1) > maxTruncations) throw new StoreTruncates(reason, { cause });
      await backOff("GET", key, reason, truncations, signal);
      body = await request([200], "GET", key, undefined, signal);
    }
  }

  const client: StoreClient = {
    async put(key, bytes, signal) {
      const response = await request([200, 201, 204, 412], "PUT", key, bytes, signal);
      await textOf(response);
      if (response.statusCode !== 412) return;
      // The existing object may be from an earlier attempt whose response was lost.
      const stored = await client.get(key, signal);
      if (stored === undefined) return client.put(key, bytes, signal);
      const hash = createHash("sha256");
      for await (const chunk of stored) hash.update(chunk);
      if (!hash.digest().equals(createHash("sha256").update(bytes).digest())) {
        throw new ObjectDiffers(`another object exists under ${key}`);
      }
    },
    async get(key, signal) {
      const response = await request([200, 404], "GET", key, undefined, signal);
      if (response.statusCode === 200) return completeBody(response, key, signal);
      await textOf(response);
      return undefined;
    },
    async size(key, signal) {
      const response = await request([200, 404], "HEAD", key, undefined, signal);
      response.resume();
      return response.statusCode === 200 ? Number(response.headers["content-length"]) : undefined;
    },
  };
  return client;
}

/** Writes the body in steps, since TLS copies what is in flight, and stops once the store has responded. */
function writeBody(call: ClientRequest, body: Buffer): void {
  let hasResponse = false;
  call.once("response", (response) => {
    hasResponse = true;
    response.once("end", () => call.writableEnded || call.destroy());
  });
  const step = (at: number): void => {
    if (at >= body.length) call.end();
    else call.write(body.subarray(at, at + stepBytes), (error) => error != null || hasResponse || step(at + stepBytes));
  };
  step(0);
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of response as AsyncIterable<Buffer>) text = (text + chunk.toString("latin1")).slice(0, 2_000);
  return text;
}

/** Resolves to the addresses that came with the URL, since machines use no external name server. */
function lookupIn(addresses: readonly string[]): LookupFunction | undefined {
  if (addresses.length === 0) return undefined;
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_name, options, callback) => {
    const [first] = all;
    if (options.all === true) callback(null, all);
    else if (first !== undefined) callback(null, first.address, first.family);
  };
}
