import { jsonFrame, readJsonFrames } from "../../json-frames.ts";

/** Offset that a consumer group committed. */
export interface StoredOffset {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly metadata: string | null;
}

/**
 * Headers of a snapshot's frames; `batches` are followed by the given number of bytes. Groups come first, each in one
 * frame or several, then each topic with its partitions, and the last frame is `end`.
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

/** Length of the texts in a frame of offsets, which clients choose: a group may have a long one for each partition. */
const maxOffsetChars = 512 << 10;

/** Encodes a frame; the bytes of `batches` follow separately. */
export const frame = (header: SnapshotFrame): Buffer => jsonFrame(header);

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
export function readFrames(
  bytes: AsyncIterable<Uint8Array>,
): AsyncGenerator<{ readonly header: SnapshotFrame; readonly content: Buffer }> {
  return readJsonFrames<SnapshotFrame>(bytes, (header) => (header.kind === "batches" ? header.bytes : 0));
}
