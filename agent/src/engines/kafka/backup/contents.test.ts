import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { singleRecord } from "../protocol/record-batch.ts";
import { batchesOf } from "./batches.ts";
import { readContents, unpackedLog, unpackSnapshot } from "./contents.ts";
import { frame, groupFrames, readFrames, type SnapshotFrame } from "./frames.ts";

let data: string;
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), "holdfast-kafka-"));
  mkdirSync(join(data, "kafka"));
});
afterEach(() => rmSync(data, { recursive: true }));

const day = 86_400_000;

/** A batch of one record, written under the fifth leader. */
function batch(offset: number, timeMs = 0): Buffer {
  const bytes = singleRecord(Buffer.from(`record ${offset}`), timeMs);
  bytes.writeBigInt64BE(BigInt(offset));
  bytes.writeInt32BE(5, 12);
  return bytes;
}

async function unpack(...frames: readonly (SnapshotFrame | Buffer)[]): Promise<void> {
  async function* stream() {
    for (const each of frames) {
      yield frame(Buffer.isBuffer(each) ? { kind: "batches", bytes: each.length } : each);
      if (Buffer.isBuffer(each)) yield each;
    }
  }
  await unpackSnapshot({ paths: { data } }, stream(), new AbortController().signal);
}

const topic: SnapshotFrame = { kind: "topic", name: "orders", partitions: 1, config: {} };
const filesOf = (at: number, partition: number) => {
  const directory = unpackedLog({ paths: { data } }, at, partition);
  return Object.fromEntries(
    readdirSync(directory).map((name) => [
      Number(name.replace(".log", "")),
      [...batchesOf(readFileSync(join(directory, name)))].map(({ baseOffset }) => baseOffset),
    ]),
  );
};

test("a log begins at its first record, and its batches have the first leader", async () => {
  const start: SnapshotFrame = { kind: "partition", partition: 0, start: 7 };
  await unpack(
    topic,
    start,
    Buffer.concat([batch(7), batch(9)]),
    { kind: "partition_end", start: 7, end: 10 },
    {
      kind: "end",
    },
  );
  expect(filesOf(0, 0)).toEqual({ 7: [7, 9] });
  const bytes = readFileSync(join(unpackedLog({ paths: { data } }, 0, 0), "00000000000000000007.log"));
  expect([...batchesOf(bytes)].map(({ bytes: each }) => each.readInt32BE(12))).toEqual([0, 0]);
  expect((await readContents({ paths: { data } })).topics).toEqual([
    { name: "orders", config: {}, partitions: [{ start: 7, end: 10, records: 2 }] },
  ]);
});

test("an end without a record is the name of the last file", async () => {
  const ends = { kind: "partition_end", start: 5, end: 12 } as const;
  const [first, second]: SnapshotFrame[] = [
    { kind: "partition", partition: 0, start: 12 },
    { kind: "partition", partition: 1, start: 5 },
  ];
  if (first === undefined || second === undefined) throw new Error("no frames");
  await unpack(topic, first, { ...ends, start: 12 }, second, batch(5), ends, { kind: "end" });
  expect(filesOf(0, 0)).toEqual({ 12: [] });
  expect(filesOf(0, 1)).toEqual({ 5: [5], 12: [] });
});

test("retention deletes whole files, so each has the records of a week", async () => {
  const start: SnapshotFrame = { kind: "partition", partition: 0, start: 0 };
  const batches = Buffer.concat([batch(0, 0), batch(1, 6 * day), batch(2, 8 * day)]);
  await unpack(topic, start, batches, { kind: "partition_end", start: 0, end: 3 }, { kind: "end" });
  expect(filesOf(0, 0)).toEqual({ 0: [0, 1], 2: [2] });
});

test("a topic that was deleted during the backup is not restored", async () => {
  const start: SnapshotFrame = { kind: "partition", partition: 0, start: 0 };
  const other: SnapshotFrame = { ...topic, name: "other" };
  const rest: readonly SnapshotFrame[] = [other, start, { kind: "partition_end", start: 0, end: 0 }, { kind: "end" }];
  await unpack(topic, start, batch(0), { kind: "topic_deleted" }, ...rest);
  const { topics } = await readContents({ paths: { data } });
  expect(topics.map(({ name, partitions }) => [name, partitions.length])).toEqual([
    ["orders", 0],
    ["other", 1],
  ]);
});

test("the ids of producers are those that brokers assigned, and none that a client made up", async () => {
  const written = (offset: number, producerId: bigint) => {
    const bytes = batch(offset);
    bytes.writeBigInt64BE(producerId, 43);
    return bytes;
  };
  const start: SnapshotFrame = { kind: "partition", partition: 0, start: 0 };
  const batches = Buffer.concat([written(0, 2_003n), written(1, 2n ** 62n), written(2, -1n)]);
  await unpack(topic, start, batches, { kind: "partition_end", start: 0, end: 3 }, { kind: "end" });
  expect((await readContents({ paths: { data } })).maxProducerId).toBe(2_003);
});

test("the offsets of a group are in several frames if clients stored long texts with them", async () => {
  const metadata = "\u0001".repeat(1 << 20);
  const offsets = [0, 1, 2].map((partition) => ({ topic: "orders", partition, offset: 7, metadata }));
  async function* stream() {
    yield* groupFrames("billing", offsets);
    yield* groupFrames("empty", []);
    yield frame({ kind: "end" });
  }
  const found: SnapshotFrame[] = [];
  for await (const { header } of readFrames(stream())) found.push(header);
  const ofGroup = (name: string) => found.filter((each) => each.kind === "group" && each.name === name);
  expect(ofGroup("billing").length).toBe(3);
  expect(ofGroup("billing").flatMap((each) => (each.kind === "group" ? each.offsets : []))).toEqual(offsets);
  expect(ofGroup("empty")).toEqual([{ kind: "group", name: "empty", offsets: [] }]);
});

test("a stream that ends too early, or lacks a partition, is refused", async () => {
  await expect(unpack(topic)).rejects.toThrow("ends too early");
  await expect(unpack(topic, { kind: "partition", partition: 1, start: 0 })).rejects.toThrow("lacks a partition");
});
