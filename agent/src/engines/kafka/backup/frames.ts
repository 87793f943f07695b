import { createByteReader } from "@holdfast/common/sealed/byte-reader.ts";

/** Offset that a consumer group committed. */
export interface StoredOffset {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly metadata: string | null;
}

/**
 * A snapshot is a sequence of frames: the length of a JSON document in 4 bytes, the document, and for `batches` the
 * given number of bytes. Groups come first, each in one frame or several, then each topic with its partitions, and the
 * last frame is `end`.
 */
export type SnapshotFrame =
  | { readonly kind: "group"; readonly name: string; readonly offsets: readonly StoredOffset[] }
  | {
      readonly kind: "topic";
      readonly name: string;
      readonly partitions: number;
      readonly config: Readonly<Record<string, string>>;
    }
  /** Batches of the topic's partition follow. `start` is the offset of its first record. */
  | { readonly kind: "partition"; readonly partition: number; readonly start: number }
  /** Complete record batches of the protocol. */
  | { readonly kind: "batches"; readonly bytes: number }
  /** The partition has all committed records before `end`. Records before `start` were deleted during the read. */
  | { readonly kind: "partition_end"; readonly start: number; readonly end: number }
  /** The topic was deleted while it was read. */
  | { readonly kind: "topic_deleted" }
  | { readonly kind: "end" };

const maxHeaderBytes = 16 << 20;
/** Length of the texts in a frame of offsets, which clients choose: a group may have a long one for each partition. */
const maxOffsetChars = 512 << 10;

/** Encodes a frame; the bytes of `batches` follow separately. */
export function frame(header: SnapshotFrame): Buffer {
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(text.length);
  return Buffer.concat([length, text]);
}

/** Encodes the offsets of a group. */
export function* groupFrames(name: string, offsets: readonly StoredOffset[]): Generator<Buffer> {
  let part: StoredOffset[] = [];
  let chars = 0;
  for (const offset of offsets) {
    const own = offset.topic.length + (offset.metadata?.length ?? 0) + 64;
    if (part.length > 0 && chars + own > maxOffsetChars) {
      yield frame({ kind: "group", name, offsets: part });
      [part, chars] = [[], 0];
    }
    part.push(offset);
    chars += own;
  }
  yield frame({ kind: "group", name, offsets: part });
}

/** Throws for a stream that does not end with `end`. */
export async function* readFrames(
  bytes: AsyncIterable<Uint8Array>,
): AsyncGenerator<{ readonly header: SnapshotFrame; readonly content: Buffer }> {
  const reader = createByteReader(bytes);
  for (;;) {
    const length = (await reader.take(4)).readUInt32BE();
    if (length > maxHeaderBytes) throw new Error("the snapshot is no snapshot of Kafka");
    const header = JSON.parse((await reader.take(length)).toString()) as SnapshotFrame;
    const content = header.kind === "batches" ? await reader.take(header.bytes) : Buffer.alloc(0);
    yield { header, content };
    if (header.kind === "end") return;
  }
}
