/** Reads a stream of chunks by numbers of bytes. */
export interface ByteReader {
  /** Exactly so many; throws when the stream ends before. */
  take(count: number): Promise<Buffer>;
  /** So many, or what is left. */
  takeUpTo(count: number): Promise<Buffer>;
}

export function createByteReader(source: AsyncIterable<Uint8Array>): ByteReader {
  const chunks = source[Symbol.asyncIterator]();
  let left: Buffer[] = [];
  let size = 0;

  async function takeUpTo(count: number): Promise<Buffer> {
    while (size < count) {
      const { value, done } = await chunks.next();
      if (done) break;
      left.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength));
      size += value.byteLength;
    }
    const all = Buffer.concat(left);
    const taken = all.subarray(0, count);
    left = taken.length < all.length ? [all.subarray(taken.length)] : [];
    size = all.length - taken.length;
    return taken;
  }

  return {
    takeUpTo,
    async take(count) {
      const bytes = await takeUpTo(count);
      if (bytes.length < count) throw new Error("the stream ends too early");
      return bytes;
    },
  };
}
