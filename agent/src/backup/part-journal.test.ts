import { createHash, randomBytes } from "node:crypto";
import { appendFile, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { backupFormat, sealManifest } from "@holdfast/common/backup/backup-manifest.ts";
import { openBackup } from "@holdfast/common/backup/backup-reader.ts";
import { createBackupWriter } from "@holdfast/common/backup/backup-writer.ts";
import { manifestObject } from "@holdfast/common/backup/object-names.ts";
import { createDirectoryStore } from "@holdfast/common/objects/directory-store.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openPartJournal } from "./part-journal.ts";

const key = { id: "k1", secret: randomBytes(32) };
const partBytes = 100_000;
const plain = randomBytes(1_000_000);
const locationOf = (attempt: number, backup = "b-1") => ({ service: "s-1", backup, attempt });

let directory: string;
let objects: ObjectStore;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "holdfast-parts-"));
  objects = createDirectoryStore(join(directory, "objects"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** Reads up to the given byte, where the engine fails. */
async function* source(bytes: Buffer, breaksAt = Number.POSITIVE_INFINITY): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += 10_000) {
    if (at >= breaksAt) throw new Error("the engine has ended");
    yield bytes.subarray(at, at + 10_000);
  }
}

async function* inOnePiece(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

async function take(location: ReturnType<typeof locationOf>, bytes: AsyncIterable<Buffer>) {
  const put: string[] = [];
  const journal = await openPartJournal(directory, location, async (object) => (await objects.head(object))?.sizeBytes);
  const writer = createBackupWriter({
    location,
    key,
    partBytes,
    stored: journal,
    async put(object, sealed) {
      put.push(object);
      await objects.put(object, inOnePiece(sealed), { ifAbsent: true });
    },
  });
  const stream = await writer.write({ name: "dump.rdb", member: "n-1", bytes }).catch(() => undefined);
  await journal.close();
  return { put, stream, journal };
}

async function opened(location: ReturnType<typeof locationOf>, stream: Awaited<ReturnType<typeof take>>["stream"]) {
  if (stream === undefined) throw new Error("the stream broke off");
  const at = new Date(0).toISOString();
  const facts = { kind: "snapshot", engine: "valkey", version: "8", startedAt: at, endedAt: at, dataTime: at };
  const manifest = { format: backupFormat, ...location, ...facts, positions: null, streams: [stream] } as const;
  await objects.put(manifestObject(location), inOnePiece(await sealManifest(manifest, key)));
  const reader = await openBackup({ location, key, get: objects.get });
  return { reader, bytes: await buffer(reader.read(stream)) };
}

test("a second attempt stores only missing parts, and is read as its own bytes", async () => {
  const first = await take(locationOf(1), source(plain, 600_000));
  expect(first.stream).toBeUndefined();
  expect(first.put.length).toBeGreaterThanOrEqual(5);
  // One file changed between the attempts, in the third piece.
  const changed = Buffer.from(plain);
  changed.writeUInt8(changed.readUInt8(250_000) ^ 1, 250_000);
  const second = await take(locationOf(2), source(changed));
  expect(second.put.length).toBe(10 - first.put.length + 1);
  expect(second.put).toContain("services/s-1/backups/b-1/2/dump.rdb/000003");
  const { reader, bytes } = await opened(locationOf(2), second.stream);
  expect(bytes.equals(changed)).toBe(true);
  expect([...reader.objects].filter((object) => object.includes("/b-1/1/")).length).toBe(first.put.length - 1);
  await second.journal.remove();
  expect(await readdir(directory)).toEqual(["objects"]);
});

test("parts that the store lost or changed are stored again", async () => {
  const first = await take(locationOf(1), source(plain));
  const [lost = "", other = ""] = first.put;
  await objects.delete(lost);
  await objects.delete(other);
  await objects.put(other, inOnePiece(Buffer.from("something else")));
  const second = await take(locationOf(2), source(plain));
  expect(second.put.toSorted()).toEqual([lost, other].map((object) => object.replace("/1/", "/2/")).toSorted());
  expect((await opened(locationOf(2), second.stream)).bytes.equals(plain)).toBe(true);
});

test("a truncated journal and one of another backup are harmless", async () => {
  await take(locationOf(1), source(plain, 600_000));
  await appendFile(join(directory, "backup.parts"), '{"stream":"dump.rdb","dig');
  const second = await take(locationOf(2), source(plain));
  expect((await opened(locationOf(2), second.stream)).bytes.equals(plain)).toBe(true);
  const other = await take(locationOf(1, "b-2"), source(plain));
  expect(other.put).toHaveLength(10);
});

test("the same attempt again stores nothing twice, and nothing over another object", async () => {
  const first = await take(locationOf(1), source(plain, 600_000));
  const again = await take(locationOf(1), source(plain));
  expect(again.put.filter((object) => first.put.includes(object))).toEqual([]);
  const digests = again.stream?.parts.map(({ sha256 }) => sha256) ?? [];
  for (const [index, { object }] of (again.stream?.parts ?? []).entries()) {
    const stored = await objects.get(object);
    if (stored === undefined) throw new Error(`${object} is not there`);
    const sha256 = createHash("sha256")
      .update(await buffer(stored))
      .digest("hex");
    expect(sha256).toBe(digests[index]);
  }
});
