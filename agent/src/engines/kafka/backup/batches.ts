/** A record batch (magic 2) in the bytes of a log. */
export interface Batch {
  readonly bytes: Buffer;
  /** Offset of the first record, and the one of the next batch. */
  readonly baseOffset: number;
  readonly nextOffset: number;
  /** Newest time of a record, in milliseconds since 1970. */
  readonly maxTimestamp: number;
  /** Id of the idempotent producer; -1 without one. */
  readonly producerId: number;
  readonly records: number;
}

/** Bytes before the length of the batch, its length included. */
const prefixBytes = 12;
const headerBytes = 61;
const [epochAt, magicAt, lastDeltaAt, timestampAt, producerAt, recordsAt] = [12, 16, 23, 35, 43, 57];

/** The complete batches of a response, whose last batch may be cut. Throws for another format than magic 2. */
export function* batchesOf(bytes: Buffer): Generator<Batch> {
  for (let at = 0; at + headerBytes <= bytes.length; ) {
    const end = at + prefixBytes + bytes.readInt32BE(at + 8);
    if (end > bytes.length) return;
    if (end < at + headerBytes || bytes.readInt8(at + magicAt) !== 2)
      throw new Error("a partition has records in a format older than that of Kafka 0.11");
    const baseOffset = Number(bytes.readBigInt64BE(at));
    yield {
      bytes: bytes.subarray(at, end),
      baseOffset,
      nextOffset: baseOffset + bytes.readInt32BE(at + lastDeltaAt) + 1,
      maxTimestamp: Number(bytes.readBigInt64BE(at + timestampAt)),
      producerId: Number(bytes.readBigInt64BE(at + producerAt)),
      records: bytes.readInt32BE(at + recordsAt),
    };
    at = end;
  }
}

/** Sets the epoch of the leader that wrote the batch. The checksum does not cover it. */
export function setLeaderEpoch({ bytes }: Batch, epoch: number): void {
  bytes.writeInt32BE(epoch, epochAt);
}
