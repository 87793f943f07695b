import { createHash, randomBytes } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import type { BackupManifest, SealingKey } from "./backup-manifest.ts";
import { backupFormat, openManifest, sealManifest } from "./backup-manifest.ts";
import { BackupDamaged, openBackup } from "./backup-reader.ts";
import { createBackupWriter } from "./backup-writer.ts";
import { manifestObject } from "./object-names.ts";

const key: SealingKey = { id: "k1", secret: randomBytes(32) };
const location = { service: "s-1", backup: "b-1", attempt: 1 };
/** Incompressible, so the number of parts is predictable. */
const plain = randomBytes(700_000);
const store = new Map<string, Buffer>();
let manifest: BackupManifest;

beforeAll(async () => {
  manifest = await make(location, store);
});

async function make(where: typeof location, into: Map<string, Buffer>, sealing = key): Promise<BackupManifest> {
  const writer = createBackupWriter({
    location: where,
    key: sealing,
    partBytes: 200_000,
    put: async (object, bytes) => void into.set(object, Buffer.from(bytes)),
  });
  const streams = [
    await writer.write({ name: "base.tar", member: "n-1", bytes: inChunks(plain) }),
    await writer.write({ name: "empty", member: "n-1", bytes: inChunks(Buffer.alloc(0)) }),
  ];
  const at = new Date(0).toISOString();
  const created: BackupManifest = {
    format: backupFormat,
    ...where,
    kind: "full",
    engine: "postgresql",
    version: "17",
    startedAt: at,
    endedAt: at,
    dataTime: at,
    positions: null,
    streams,
  };
  into.set(manifestObject(where), await sealManifest(created, sealing));
  return created;
}

async function* inChunks(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += 30_000) yield bytes.subarray(at, at + 30_000);
}

async function restore(objects: ReadonlyMap<string, Buffer>, options: { key?: SealingKey; sha?: string } = {}) {
  const reader = await openBackup({
    location,
    key: options.key ?? key,
    manifestSha256: options.sha,
    get: async (object) => {
      const found = objects.get(object);
      return found && inChunks(found);
    },
  });
  const complete: Buffer[] = [];
  for (const stream of reader.manifest.streams) for await (const chunk of reader.read(stream)) complete.push(chunk);
  return Buffer.concat(complete);
}

test("a backup is read as written, and its objects are exactly those in the store", async () => {
  expect((await restore(store)).equals(plain)).toBe(true);
  const parts = manifest.streams.flatMap((stream) => stream.parts);
  expect(parts.length).toBeGreaterThan(3);
  expect([...store.keys()].sort()).toEqual([...parts.map(({ object }) => object), manifestObject(location)].sort());
  const sealed = store.get(manifestObject(location)) ?? Buffer.alloc(0);
  const sha = createHash("sha256").update(sealed).digest("hex");
  await restore(store, { sha });
  await expect(restore(store, { sha: "00" })).rejects.toThrow("differs from the one that was written");
});

describe("a changed backup is rejected", () => {
  const names = () => [...store.keys()];
  const partNames = () => names().filter((name) => /\/\d{6}$/.test(name));

  async function refused(change: (objects: Map<string, Buffer>) => void, message: string): Promise<void> {
    const objects = new Map(store);
    change(objects);
    const outcome = await restore(objects).then(
      (bytes) => `opened ${bytes.length} bytes`,
      (error: unknown) => error,
    );
    expect(outcome, message).toBeInstanceOf(BackupDamaged);
  }

  const objectOf = (objects: Map<string, Buffer>, name: string) => Buffer.from(objects.get(name) ?? Buffer.alloc(0));

  test("with any flipped bit", async () => {
    for (let i = 0; i < 160; i += 1) {
      const name = names()[i % names().length] ?? "";
      const at = Math.floor(Math.random() * (store.get(name)?.length ?? 0));
      const bit = 1 << (i % 8);
      await refused((objects) => {
        const bytes = objectOf(objects, name);
        bytes.writeUInt8(bytes.readUInt8(at) ^ bit, at);
        objects.set(name, bytes);
      }, `${name} ${at} ${bit}`);
    }
  });

  test("with a truncated, extended or missing object", async () => {
    for (let i = 0; i < 80; i += 1) {
      const name = names()[i % names().length] ?? "";
      const bytes = store.get(name) ?? Buffer.alloc(0);
      const to = i < 8 ? bytes.length - 1 : Math.floor(Math.random() * bytes.length);
      await refused((objects) => objects.set(name, bytes.subarray(0, to)), `${name} cut at ${to}`);
    }
    for (const name of names()) {
      const bytes = store.get(name) ?? Buffer.alloc(0);
      await refused((objects) => objects.set(name, Buffer.concat([bytes, Buffer.of(0)])), `${name} too long`);
      await refused((objects) => objects.delete(name), `${name} missing`);
      await refused((objects) => objects.set(name, Buffer.alloc(0)), `${name} empty`);
    }
  });

  test("with reordered parts, or with swapped, repeated or missing frames", async () => {
    const parts = partNames();
    for (const a of parts) {
      for (const b of parts) {
        if (a === b) continue;
        await refused((objects) => objects.set(a, store.get(b) ?? Buffer.alloc(0)), `${b} as ${a}`);
      }
    }
    const name = parts[0] ?? "";
    const bytes = store.get(name) ?? Buffer.alloc(0);
    const start = 9 + bytes.readUInt32BE(5);
    const size = 4 + 65_536 + 16;
    const frame = (from: number, to?: number) => bytes.subarray(start + from * size, to && start + to * size);
    const head = bytes.subarray(0, start);
    for (const pieces of [
      [frame(1, 2), frame(0, 1), frame(2)],
      [frame(0, 1), frame(0)],
      [frame(0, 1), frame(2)],
      [frame(1)],
    ]) {
      await refused((objects) => objects.set(name, Buffer.concat([head, ...pieces])), "frames");
    }
  });

  test("with objects of another backup or attempt, or with another header", async () => {
    const others = [
      { ...location, backup: "b-2" },
      { ...location, attempt: 2 },
      { ...location, service: "s-2" },
    ];
    for (const other of others) {
      const foreign = new Map<string, Buffer>();
      await make(other, foreign);
      const at = [...foreign.keys()];
      for (const [index, name] of names().entries()) {
        await refused((objects) => objects.set(name, foreign.get(at[index] ?? "") ?? Buffer.alloc(0)), name);
      }
    }
    for (const name of names()) {
      const bytes = store.get(name) ?? Buffer.alloc(0);
      const length = bytes.readUInt32BE(5);
      const header = JSON.parse(bytes.subarray(9, 9 + length).toString()) as Record<string, string>;
      for (const label of Object.keys(header)) {
        const head = Buffer.from(JSON.stringify({ ...header, [label]: `${header[label]}x` }));
        const size = Buffer.alloc(4);
        size.writeUInt32BE(head.length);
        const changed = Buffer.concat([bytes.subarray(0, 5), size, head, bytes.subarray(9 + length)]);
        await refused((objects) => objects.set(name, changed), `${name} ${label}`);
      }
    }
  });

  test("with a wrong key, or a manifest that refers to other objects", async () => {
    const wrong = { ...key, secret: randomBytes(32) };
    await expect(restore(store, { key: wrong })).rejects.toThrow(BackupDamaged);
    await expect(restore(store, { key: { ...key, id: "k2" } })).rejects.toThrow(BackupDamaged);
    const [stream] = manifest.streams;
    if (stream === undefined) throw new Error("no stream");
    const changes = [
      { ...stream, parts: stream.parts.toReversed() },
      { ...stream, parts: stream.parts.slice(0, -1) },
      { ...stream, bytes: stream.bytes - 1 },
      { ...stream, sha256: stream.sha256.replace(/^./, (c) => (c === "0" ? "1" : "0")) },
      { ...stream, name: "../base" },
    ];
    for (const changed of changes) {
      const sealed = await sealManifest({ ...manifest, streams: [changed] }, key);
      await refused((objects) => objects.set(manifestObject(location), sealed), JSON.stringify(changed).slice(0, 80));
    }
  });
});

test("a failing store is not reported as a damaged backup", async () => {
  const failing = openBackup({
    location,
    key,
    get: async (object) => {
      if (object !== manifestObject(location)) throw new Error("503");
      return inChunks(store.get(object) ?? Buffer.alloc(0));
    },
  }).then((reader) => reader.verify("all"));
  await expect(failing).rejects.toThrow("503");
  await expect(failing).rejects.not.toThrow(BackupDamaged);
});

test("a sample verification opens the first and last part of each stream", async () => {
  const opened: string[] = [];
  const reader = await openBackup({
    location,
    key,
    get: async (object) => {
      opened.push(object);
      return inChunks(store.get(object) ?? Buffer.alloc(0));
    },
  });
  await reader.verify("sample");
  const [stream] = manifest.streams;
  expect(opened).toEqual(
    expect.arrayContaining([manifestObject(location), stream?.parts[0]?.object, stream?.parts.at(-1)?.object]),
  );
  expect(opened.length).toBeLessThan(store.size);
  await expect(openManifest(Buffer.from("x"), location, key)).rejects.toThrow();
});
