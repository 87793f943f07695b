/** Reads a stream of chunks by numbers of bytes. */
export interface ByteReader {
  /** Exactly so many; throws when the stream ends before. */
  take(count: number): Promise<Buffer>;
  /** So many, or what is left. */
  takeUpTo(count: number): Promise<Buffer>;
  /** Fills the target with what comes next; answers with how much, which is less at the end of the stream alone. */
  fill(target: Buffer): Promise<number>;
  /** What is there, or comes next; throws when the stream has ended. */
  some(): Promise<Buffer>;
}

export function createByteReader(source: AsyncIterable<Uint8Array>): ByteReader {
  const chunks = source[Symbol.asyncIterator]();
  let left: Buffer[] = [];
  let size = 0;

  /** Answers whether there was one. */
  async function next(): Promise<boolean> {
    const { value, done } = await chunks.next();
    if (done) return false;
    left.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength));
    size += value.byteLength;
    return true;
  }

  async function takeUpTo(count: number): Promise<Buffer> {
    while (size < count) if (!(await next())) break;
    // A large chunk is read in many small steps: it is never copied as a whole.
    const all = left.length === 1 && left[0] !== undefined ? left[0] : Buffer.concat(left);
    const taken = all.subarray(0, count);
    left = taken.length < all.length ? [all.subarray(taken.length)] : [];
    size = all.length - taken.length;
    return taken;
  }

  return {
    takeUpTo,
    async fill(target) {
      let filled = 0;
      while (filled < target.length && (size > 0 || (await next()))) {
        const [first = Buffer.alloc(0), ...rest] = left;
        const copied = first.copy(target, filled);
        filled += copied;
        size -= copied;
        left = copied < first.length ? [first.subarray(copied), ...rest] : rest;
      }
      return filled;
    },
    async some() {
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
