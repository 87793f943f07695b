import { join } from "node:path";
import { readFile } from "node:fs/promises";
import { writeDurably } from "@holdfast/common/durable-file.ts";
import { type DataPath, engineDirectory } from "../layout.ts";
import { batchesOf } from "./batches.ts";
import { readFrames, type StoredOffset } from "./frames.ts";
import { createSegmentWriter, type SegmentWriter } from "./segments.ts";

/** Contents of a snapshot without the records, in the order of its topics. */
export interface SnapshotContents {
  readonly topics: readonly StoredTopic[];
  readonly groups: readonly { readonly name: string; readonly offsets: readonly StoredOffset[] }[];
  /** Greatest id of an idempotent producer in the records that a broker may have assigned; -1 without one. */
  readonly maxProducerId: number;
}

export interface StoredTopic {
  readonly name: string;
  readonly config: Readonly<Record<string, string>>;
  readonly partitions: readonly StoredPartition[];
}

/** Offsets of the first record and of the next one, and the number of records, which is less after compaction. */
export interface StoredPartition {
  readonly start: number;
  readonly end: number;
  readonly records: number;
}

/** Directory of an unpacked snapshot, until its files are in the engine's log directory. */
export const unpackedDirectory = (instance: DataPath): string => join(engineDirectory(instance), "unpacked");
/** Directory of the unpacked log of a partition; `topic` is the position in the contents. */
export const unpackedLog = (instance: DataPath, topic: number, partition: number): string =>
  join(unpackedDirectory(instance), `${topic}-${partition}`);
const contentsFile = (instance: DataPath): string => join(engineDirectory(instance), "contents.json");

/**
 * Brokers assign the ids of producers from 0 on, one to each that starts, but accept any id in a batch. A restore takes
 * all ids up to the greatest one (`passProducerIds`), which would never end for an id that a client made up.
 */
const maxAssignedProducerId = 2 ** 26;

export async function readContents(instance: DataPath): Promise<SnapshotContents> {
  return JSON.parse(await readFile(contentsFile(instance), "utf8")) as SnapshotContents;
}

/** Writes the records of a snapshot as segment files, and its contents beside them. */
export async function unpackSnapshot(
  instance: DataPath,
  bytes: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  const topics: { name: string; config: Readonly<Record<string, string>>; partitions: StoredPartition[] }[] = [];
  const groups: { name: string; offsets: readonly StoredOffset[] }[] = [];
  const deleted = new Set<string>();
  let maxProducerId = -1;
  let records = 0;
  let writer: SegmentWriter | undefined;
  const current = () => {
    const topic = topics.at(-1);
    if (topic === undefined) throw new Error("the snapshot has records of no topic");
    return topic;
  };
  try {
    for await (const { header, content } of readFrames(bytes)) {
      signal.throwIfAborted();
      switch (header.kind) {
        case "group":
          groups.push({ name: header.name, offsets: header.offsets });
          break;
        case "topic":
          topics.push({ name: header.name, config: header.config, partitions: [] });
          break;
        case "partition":
          if (header.partition !== current().partitions.length) throw new Error("the snapshot lacks a partition");
          writer = await createSegmentWriter(unpackedLog(instance, topics.length - 1, header.partition), header.start);
          records = 0;
          break;
        case "batches": {
          const batches = [...batchesOf(content)];
          for (const { producerId, records: count } of batches) {
            if (producerId <= maxAssignedProducerId) maxProducerId = Math.max(maxProducerId, producerId);
            records += count;
          }
          await writer?.add(batches);
          break;
        }
        case "partition_end":
          await writer?.end(header);
          writer = undefined;
          current().partitions.push({ start: header.start, end: header.end, records });
          break;
        case "topic_deleted":
          deleted.add(current().name);
          await writer?.close();
          writer = undefined;
          break;
        case "end":
          break;
      }
    }
  } finally {
    await writer?.close();
  }
  // A deleted topic has no partitions, so that the positions of the others in the list remain.
  const stored = topics.map((topic) => (deleted.has(topic.name) ? { ...topic, partitions: [] } : topic));
  const contents: SnapshotContents = { topics: stored, groups, maxProducerId };
  await writeDurably(contentsFile(instance), JSON.stringify(contents), 0o640);
}
