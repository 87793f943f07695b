/** Reads a stream of chunks by byte counts. */
export interface ByteReader {
  /** Reads exactly `count` bytes; throws if the stream ends earlier. */
  take(count: number): Promise<Buffer>;
  /** Reads up to `count` bytes; fewer only at the end of the stream. */
  takeUpTo(count: number): Promise<Buffer>;
  /** Fills the target. Returns the number of bytes, which is smaller than the target only at the end of the stream. */
  fill(target: Buffer): Promise<number>;
  /** The bytes that are buffered, or the next ones; throws if the stream has ended. */
  takeAvailable(): Promise<Buffer>;
}

export function createByteReader(source: AsyncIterable<Uint8Array>): ByteReader {
  const chunks = source[Symbol.asyncIterator]();
  let buffered: Buffer[] = [];
  let size = 0;

  /** Buffers the next chunk; false at the end of the stream. */
  async function next(): Promise<boolean> {
    const { value, done } = await chunks.next();
    if (done) return false;
    buffered.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength));
    size += value.byteLength;
    return true;
  }

  async function takeUpTo(count: number): Promise<Buffer> {
    while (size < count) if (!(await next())) break;
    // A large chunk is read in many small steps and never copied entirely.
    const all = buffered.length === 1 && buffered[0] !== undefined ? buffered[0] : Buffer.concat(buffered);
    const taken = all.subarray(0, count);
    buffered = taken.length < all.length ? [all.subarray(taken.length)] : [];
    size = all.length - taken.length;
    return taken;
  }

  return {
    takeUpTo,
    async fill(target) {
      let filled = 0;
      while (filled < target.length && (size > 0 || (await next()))) {
        const [first = Buffer.alloc(0), ...rest] = buffered;
        const copied = first.copy(target, filled);
        filled += copied;
        size -= copied;
        buffered = copied < first.length ? [first.subarray(copied), ...rest] : rest;
      }
      return filled;
    },
    async takeAvailable() {
      const bytes = await takeUpTo(Math.max(size, 1));
      if (bytes.length === 0) throw new Error("the stream ends too early");
      return bytes;
    },
    async take(count) {
      const bytes = await takeUpTo(count);
      if (bytes.length < count) throw new Error("the stream ends too early");
      return bytes;
    },
  };
}
