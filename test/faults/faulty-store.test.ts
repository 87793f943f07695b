import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, request as httpRequest, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { BackupFacet } from "@holdfast/agent/engines/backup-facet.ts";
import type { Instance } from "@holdfast/agent/engines/engine-driver.ts";
import { runBackup } from "@holdfast/agent/backup/run-backup.ts";
import type { BackupJob, Report } from "@holdfast/agent/backup/job.ts";
import { createStoreClient } from "@holdfast/agent/backup/store-client.ts";
import { createPresignedUrlCache } from "@holdfast/agent/backup/presigned-url-cache.ts";
import { openBackup } from "@holdfast/common/backup/backup-reader.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { createDirectoryStore } from "@holdfast/common/objects/directory-store.ts";
import { directoryKey, storeBucket } from "@holdfast/common/objects/signed-url.ts";
import { createUrlSigner } from "@holdfast/controller/kernel/objects/url-signer.ts";
import { startStoreServer, type StoreServer } from "@holdfast/store/store-server.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { partial } from "@holdfast/testing/partial.ts";

/** Misbehavior of a store at the nth request of a method, counted from 1. */
interface Fault {
  readonly method: "PUT" | "GET" | "HEAD";
  readonly matches: (nth: number) => boolean;
  /** Returns true if it sent a response; otherwise the request is forwarded to the store. */
  readonly misbehave: (exchange: Exchange) => Promise<boolean>;
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly body: Buffer;
  readonly response: ServerResponse;
  /** Forwards the request with another body; returns the store's response. */
  readonly forward: (body: Buffer) => Promise<{ status: number; headers: IncomingMessage["headers"]; body: Buffer }>;
}

const respondWith =
  (status: number) =>
  async ({ response }: Exchange) => {
    response.writeHead(status).end("<Error/>");
    return true;
  };
const first = (count: number) => (nth: number) => nth <= count;
const always = () => true;
const flipped = (body: Buffer) => {
  const changed = Buffer.from(body);
  const at = Math.floor(changed.length / 2);
  changed[at] = (changed[at] ?? 0) ^ 1;
  return changed;
};

/** Stores a changed body, and responds with success. */
const changing =
  (change: (body: Buffer) => Buffer) =>
  async ({ body, response, forward }: Exchange) => {
    await forward(change(body));
    response.writeHead(200).end();
    return true;
  };

const halved = async ({ response, forward }: Exchange) => {
  const { status, headers, body } = await forward(Buffer.alloc(0));
  response.writeHead(status, headers).write(body.subarray(0, Math.floor(body.length / 2)), () => response.destroy());
  return true;
};

/** Faults in spite of which the backup is stored completely. */
const tolerated: Readonly<Record<string, Fault>> = {
  "refuses a URL": { method: "PUT", matches: first(2), misbehave: respondWith(403) },
  "fails now and then": { method: "PUT", matches: (nth) => nth % 2 === 1, misbehave: respondWith(500) },
  "fails to return an object": { method: "GET", matches: first(1), misbehave: respondWith(500) },
  "is full for a while": { method: "PUT", matches: first(3), misbehave: respondWith(507) },
  "rate-limits requests": { method: "PUT", matches: first(2), misbehave: respondWith(429) },
  "is slow": {
    method: "PUT",
    matches: always,
    misbehave: async () => {
      // Time: the delay of a slow store.
      await sleep(300);
      return false;
    },
  },
  "truncates its responses": { method: "GET", matches: (nth) => nth % 2 === 1, misbehave: halved },
  "closes uploads early": {
    method: "PUT",
    matches: first(1),
    misbehave: async ({ request }) => {
      request.socket.destroy();
      return true;
    },
  },
  "stores and does not say so": {
    method: "PUT",
    matches: first(2),
    misbehave: async ({ request, body, forward }) => {
      await forward(body);
      request.socket.destroy();
      return true;
    },
  },
};

/** The backup fails, with a reason that names the object or the response. */
const fatal: Readonly<Record<string, { readonly fault: Fault; readonly reason: RegExp }>> = {
  "refuses every URL": {
    fault: { method: "PUT", matches: always, misbehave: respondWith(403) },
    reason: /the store responded 403 to PUT/,
  },
  "takes nothing": {
    fault: { method: "PUT", matches: always, misbehave: respondWith(400) },
    reason: /responded 400 to PUT/,
  },
  "acknowledges an object that it did not store": {
    fault: { method: "PUT", matches: first(1), misbehave: respondWith(200) },
    reason: /has no bytes instead of \d+/,
  },
  "stores a part of an upload": {
    fault: { method: "PUT", matches: first(1), misbehave: changing((body) => body.subarray(1)) },
    reason: /has \d+ bytes instead of \d+/,
  },
  "stores something else": {
    fault: { method: "PUT", matches: first(1), misbehave: changing(flipped) },
    reason: /dump.rdb.*authenticate/,
  },
  "gives back something else": {
    fault: {
      method: "GET",
      matches: always,
      misbehave: async ({ response, forward }) => {
        const { status, headers, body } = await forward(Buffer.alloc(0));
        response.writeHead(status, headers).end(flipped(body));
        return true;
      },
    },
    reason: /the manifest differs from the one that was written/,
  },
  "cuts all that it gives back": {
    fault: { method: "GET", matches: always, misbehave: halved },
    reason: /the store's response for .*manifest ended at \d+ of \d+ bytes/,
  },
};

const key = { id: "k-1", secret: randomBytes(32).toString("base64") };
/** Two full parts and a partial one. */
const plain = Buffer.alloc((32 << 20) + 1_000, "what an engine has; ");
let directory: string;
let store: StoreServer;
const secret = directoryKey(randomBytes(32).toString("hex"));

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "holdfast-faulty-"));
  const clocks = { now: Date.now, monotonicMs: () => performance.now() };
  const deps = { directory: join(directory, "objects"), key: secret, log: silentLog };
  store = await startStoreServer({ ...deps, ...clocks, host: "127.0.0.1", port: 0, identity: undefined });
});
afterAll(async () => {
  await store?.close();
  await rm(directory, { recursive: true, force: true });
});

/** A proxy in front of the real store. */
async function startFaulty(fault: Fault): Promise<{ port: number; close(): void }> {
  let count = 0;
  const proxy = createServer((request, response) => {
    const serve = async () => {
      const body = await buffer(request);
      const forward = (sent: Buffer) => forwarded(request, sent);
      if (request.method === fault.method && fault.matches((count += 1)))
        if (await fault.misbehave({ request, body, response, forward })) return;
      const fromStore = await forward(body);
      response.writeHead(fromStore.status, fromStore.headers).end(fromStore.body);
    };
    serve().catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const close = () => {
    proxy.closeAllConnections();
    proxy.close();
  };
  return { port: (proxy.address() as AddressInfo).port, close };
}

async function forwarded({ method, url, headers }: IncomingMessage, body: Buffer) {
  const length = method === "PUT" ? { "content-length": String(body.length) } : {};
  const options = { host: "127.0.0.1", port: store.port, method, path: url, headers: { ...headers, ...length } };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    httpRequest(options, resolve).once("error", reject).end(body);
  });
  return { status: response.statusCode ?? 0, headers: response.headers, body: await buffer(response) };
}

/** A backup of `plain` by the agent's own pipeline. */
async function backedUp(backup: string, fault: Fault): Promise<Report> {
  const proxy = await startFaulty(fault);
  const endpoint = { addresses: ["127.0.0.1"], port: proxy.port, trustBundle: "" };
  const signer = createUrlSigner({
    base: `http://127.0.0.1:${proxy.port}/${storeBucket}`,
    key: secret,
    endpoint: { addresses: async () => endpoint.addresses, port: proxy.port, trustBundle: () => "" },
    serverSideEncryption: false,
    now: Date.now,
  });
  const urls = createPresignedUrlCache(
    {
      async mint(uses) {
        const urls = await Promise.all(uses.map((use) => signer.sign(use, 3_600)));
        return { urls, expiresAtMs: Date.now() + 3_600_000, endpoint };
      },
    },
    Date.now,
  );
  const facet = partial<BackupFacet>({
    kind: "snapshot",
    open: async () => ({
      streams: [
        {
          name: "dump.rdb",
          bytes: (async function* () {
            yield plain;
          })(),
        },
      ],
      totalBytes: plain.length,
      end: async () => ({ version: "1", dataTime: new Date(), positions: null }),
      close: async () => undefined,
    }),
  });
  const data = join(directory, backup);
  await mkdir(data);
  const target = { service: "s-1", backup, attempt: 1 };
  const job = { kind: "backup", location: target, key, pageMap: false, background: false } as BackupJob;
  try {
    return await runBackup(job, {
      instance: partial<Instance>({ spec: { engine: "fixture", nodeId: "n-1" }, paths: { data } }),
      facet,
      store: createStoreClient(urls, () => undefined),
      urls,
      link: { report: () => undefined } as never,
      now: Date.now,
      storeFailure: () => undefined,
      signal: AbortSignal.timeout(120_000),
    });
  } finally {
    proxy.close();
  }
}

test.concurrent.each(Object.entries(tolerated))(
  "a backup is stored completely in a store that %s",
  async (name, fault) => {
    const backup = name.replaceAll(" ", "-");
    const report = await backedUp(backup, fault);
    expect(report).toMatchObject({ state: "stored" });
    const objects = createDirectoryStore(join(directory, "objects"));
    const target = { service: "s-1", backup, attempt: 1 };
    const reader = await openBackup({
      location: target,
      key: { id: key.id, secret: Buffer.from(key.secret, "base64") },
      get: (object) => objects.get(object),
      manifestSha256: String(report["manifestSha256"]),
    });
    await reader.verify("all");
  },
);

test.concurrent.each(Object.entries(fatal))(
  "no backup is stored in a store that %s, and its error has the reason",
  async (name, { fault, reason }) => {
    await expect(backedUp(name.replaceAll(" ", "-"), fault)).rejects.toThrow(reason);
  },
);
