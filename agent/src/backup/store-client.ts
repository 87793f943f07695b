import { createHash } from "node:crypto";
import { Agent as HttpAgent, type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { ObjectMethod } from "./job.ts";
import type { SignedUse, UrlPurse } from "./url-purse.ts";

/** The object store, by signed URLs. Whatever may pass is tried again until the signal; only what cannot is thrown. */
export interface StoreClient {
  /** Resolves when the object is durable and nothing reads the bytes any more; throws ObjectDiffers for another one. */
  put(key: string, bytes: Buffer, signal: AbortSignal): Promise<void>;
  /** Undefined only when the store says that there is none. A stream that the store cuts goes on where it was. */
  get(key: string, signal: AbortSignal): Promise<AsyncIterable<Buffer> | undefined>;
  /** Bytes of the object; undefined when there is none. */
  size(key: string, signal: AbortSignal): Promise<number | undefined>;
}

/** The store does not do it, and would not later. */
export class StoreRefused extends Error {
  override readonly name: string = "StoreRefused";
}

/** It gives back no more of an object, however often it is asked. */
class StoreCuts extends StoreRefused {}

/** Write-once: something else was written there before. */
export class ObjectDiffers extends StoreRefused {}

const quietMs = 30_000;
const stepBytes = 256 << 10;
const firstRetryMs = 200;
const longestRetryMs = 10_000;
/** A fresh URL that is refused so often in a row is refused for good. */
const mostForbidden = 5;
/** An answer that breaks off so often in a row, without a byte more, breaks off for good. */
const mostCuts = 5;

export function createStoreClient(purse: UrlPurse, onTrouble: (reason: string | undefined) => void): StoreClient {
  const http = new HttpAgent({ keepAlive: true, maxSockets: 8 });
  const https = new HttpsAgent({ keepAlive: true, maxSockets: 8 });

  function send(
    method: ObjectMethod,
    use: SignedUse,
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
      call.setTimeout(quietMs, () => call.destroy(new Error(`the store said nothing for ${quietMs / 1000} s`)));
      call.once("error", reject);
      if (body === undefined) call.end();
      else feed(call, body);
    });
  }

  /** Until the store answered with one of these statuses. */
  async function until(
    accepted: readonly number[],
    method: ObjectMethod,
    key: string,
    body: Buffer | undefined,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    let forbidden = 0;
    for (let tries = 0; ; tries += 1) {
      signal.throwIfAborted();
      const use = await purse.take(method, key, signal);
      let reason: string;
      try {
        const answer = await send(method, use, body, signal);
        const status = answer.statusCode ?? 0;
        if (accepted.includes(status)) {
          onTrouble(undefined);
          return answer;
        }
        const words = (await textOf(answer)).slice(0, 300);
        reason = `the store answered ${status} to ${method} ${key}: ${words}`;
        forbidden = status === 403 || status === 401 ? forbidden + 1 : 0;
        const isFinal = status >= 400 && status < 500 && ![401, 403, 408, 409, 425, 429].includes(status);
        if (isFinal || forbidden >= mostForbidden) throw new StoreRefused(reason);
      } catch (error) {
        if (error instanceof StoreRefused) throw error;
        signal.throwIfAborted();
        reason = `the store does not answer: ${error instanceof Error ? error.message : String(error)}`;
      }
      await beforeAgain(method, key, reason, tries, signal);
    }
  }

  async function beforeAgain(method: ObjectMethod, key: string, reason: string, tries: number, signal: AbortSignal) {
    purse.drop(method, key);
    onTrouble(reason);
    const longestMs = Math.min(longestRetryMs, firstRetryMs * 2 ** Math.min(tries, 10));
    await sleep(longestMs * (0.5 + Math.random() / 2), undefined, { signal });
  }

  /** The body of an answer; what was cut is fetched again, and goes on behind what was there. Objects never change. */
  async function* wholly(answer: IncomingMessage, key: string, signal: AbortSignal): AsyncGenerator<Buffer> {
    const expected = Number(answer.headers["content-length"] ?? Number.NaN);
    let given = 0;
    let cuts = 0;
    for (let body: AsyncIterable<Buffer> = answer; ; ) {
      let at = 0;
      let cause: unknown;
      try {
        for await (const chunk of body) {
          const fresh = chunk.subarray(Math.max(0, given - at));
          at += chunk.length;
          if (at <= given) continue;
          given = at;
          cuts = 0;
          yield fresh;
        }
        if (Number.isNaN(expected) || at === expected) return;
      } catch (error) {
        signal.throwIfAborted();
        cause = error;
      }
      const reason = `the store cut ${key} at ${given} of ${expected} bytes`;
      if ((cuts += 1) > mostCuts) throw new StoreCuts(reason, { cause });
      await beforeAgain("GET", key, reason, cuts, signal);
      body = await until([200], "GET", key, undefined, signal);
    }
  }

  const client: StoreClient = {
    async put(key, bytes, signal) {
      const answer = await until([200, 201, 204, 412], "PUT", key, bytes, signal);
      await textOf(answer);
      if (answer.statusCode !== 412) return;
      // Perhaps from a try of ours whose answer was lost.
      const there = await client.get(key, signal);
      if (there === undefined) return client.put(key, bytes, signal);
      const hash = createHash("sha256");
      for await (const chunk of there) hash.update(chunk);
      if (!hash.digest().equals(createHash("sha256").update(bytes).digest())) {
        throw new ObjectDiffers(`another object is in the place of ${key}`);
      }
    },
    async get(key, signal) {
      const answer = await until([200, 404], "GET", key, undefined, signal);
      if (answer.statusCode === 200) return wholly(answer, key, signal);
      await textOf(answer);
      return undefined;
    },
    async size(key, signal) {
      const answer = await until([200, 404], "HEAD", key, undefined, signal);
      answer.resume();
      return answer.statusCode === 200 ? Number(answer.headers["content-length"]) : undefined;
    },
  };
  return client;
}

/** One step after the other, as TLS has a copy of what is under way; no more of them once the store has answered. */
function feed(call: ClientRequest, body: Buffer): void {
  let isAnswered = false;
  call.once("response", (answer) => {
    isAnswered = true;
    answer.once("end", () => call.writableEnded || call.destroy());
  });
  const step = (at: number): void => {
    if (at >= body.length) call.end();
    else call.write(body.subarray(at, at + stepBytes), (error) => error != null || isAnswered || step(at + stepBytes));
  };
  step(0);
}

async function textOf(answer: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of answer as AsyncIterable<Buffer>) text = (text + chunk.toString("latin1")).slice(0, 2_000);
  return text;
}

/** The addresses that came with the URL, in their order: machines ask no foreign name server. */
function lookupIn(addresses: readonly string[]): LookupFunction | undefined {
  if (addresses.length === 0) return undefined;
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_name, options, callback) => {
    const [first] = all;
    if (options.all === true) callback(null, all);
    else if (first !== undefined) callback(null, first.address, first.family);
  };
}
