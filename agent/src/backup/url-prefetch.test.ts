import { createHash, randomBytes } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { backupFormat, sealManifest } from "@holdfast/common/backup/backup-manifest.ts";
import { openBackup } from "@holdfast/common/backup/backup-reader.ts";
import { createBackupWriter } from "@holdfast/common/backup/backup-writer.ts";
import { newLogSecrets, sealLog } from "@holdfast/common/backup/log-object.ts";
import { logObject, manifestObject } from "@holdfast/common/backup/object-names.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/store.ts";
import { createArchiveReader } from "./archive-reader.ts";
import type { ObjectUseJson } from "./job.ts";
import { createStoreClient } from "./store-client.ts";
import { type JobContext, readerOf } from "./job-context.ts";
import { createPresignedUrlCache } from "./presigned-url-cache.ts";

// Many URLs are requested together: a round trip for each object would take most of a restore's time.
const location = { service: "s-1", backup: "b-1", attempt: 1 };
const secret = randomBytes(32);
const key = { id: "k-1", secret: secret.toString("base64") };
const signal = new AbortController().signal;
let store: TestStore;
/** Number of URLs of each request. */
let requested: number[] = [];

beforeAll(async () => {
  store = await startTestStore();
});
afterAll(() => store?.remove());

/** Client of a controller that returns URLs once `responds` resolves. */
function client(responds: () => Promise<unknown> = async () => undefined) {
  requested = [];
  const mint = async (uses: readonly ObjectUseJson[]) => {
    requested.push(uses.length);
    await responds();
    const { endpoint } = store.signer;
    return {
      urls: await Promise.all(uses.map((use) => store.signer.sign(use, 3_600))),
      expiresAtMs: Date.now() + 3_600_000,
      endpoint: { addresses: ["127.0.0.1"], port: endpoint.port, trustBundle: endpoint.trustBundle() },
    };
  };
  const urls = createPresignedUrlCache({ mint }, Date.now);
  return { urls, store: createStoreClient(urls, () => undefined), signal };
}

async function* one(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

const noFacet = {} as JobContext["facet"];

test("an archive of 150 objects is read with three batches of URLs", async () => {
  const count = 150;
  for (let sequence = 1; sequence <= count; sequence += 1) {
    const range = { branch: "1", from: `0/${(sequence - 1).toString(16)}`, to: `0/${sequence.toString(16)}`, time: "" };
    const header = { service: "s-1", term: 1, sequence, ...range };
    const sealed = sealLog(Buffer.from("log"), header, { id: key.id, secret }, newLogSecrets());
    await store.objects.put(logObject({ service: "s-1", term: 1 }, sequence), one(sealed));
  }
  const logs = [{ term: 1, firstSequence: 1, lastSequence: count, keys: [key] }];
  const reader = createArchiveReader(
    { location, logs, target: { kind: "log_end" } },
    undefined,
    { ...client(), facet: noFacet },
    () => undefined,
  );
  for (let index = 0; index < count; index += 1)
    expect((await reader?.at(index))?.header).toMatchObject({ sequence: index + 1 });
  expect(requested).toEqual([64, 64, 22]);
});

test("a backup of 40 parts is read with four URL batches, each requested 16 parts ahead", async () => {
  const plain = randomBytes(400_000);
  const writer = createBackupWriter({
    location,
    key: { id: key.id, secret },
    partBytes: 10_000,
    put: async (object, bytes) => void (await store.objects.put(object, one(Buffer.from(bytes)))),
  });
  const stream = await writer.write({ name: "dump", member: "n-1", bytes: one(plain) });
  expect(stream.parts).toHaveLength(40);
  const at = new Date(0).toISOString();
  const facts = { kind: "full", engine: "postgresql", version: "17", startedAt: at, endedAt: at, dataTime: at };
  const manifest = { format: backupFormat, ...location, ...facts, positions: null, streams: [stream] } as const;
  const sealed = await sealManifest(manifest, { id: key.id, secret });
  await store.objects.put(manifestObject(location), one(sealed));
  const manifestSha256 = createHash("sha256").update(sealed).digest("hex");
  const sixteenLater = Promise.withResolvers<void>();
  const behind = client(() => (requested.length === 3 ? sixteenLater.promise : Promise.resolve()));
  const deps = readerOf({ location, key, manifestSha256 }, behind);
  const get = (object: string) => {
    if (object === stream.parts[31]?.object) sixteenLater.resolve();
    return deps.get(object);
  };
  const reader = await openBackup({ ...deps, get });
  expect((await buffer(reader.read(stream))).equals(plain)).toBe(true);
  expect(requested).toEqual([1, 32, 16, 16]);
});
