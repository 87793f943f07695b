import { once } from "node:events";
import type { Readable, Writable } from "node:stream";

/** Bytes of a stream in pieces of requested sizes. At most the requested size and one chunk are in memory. */
export interface ByteSource {
  /** Undefined if the stream ends or fails before it has as many bytes. One call at a time. */
  take(size: number): Promise<Buffer | undefined>;
  /** Fills the buffer with the next bytes as they arrive. False if the stream ends or fails before. */
  fill(to: Buffer): Promise<boolean>;
  /** Passes bytes on as they arrive, or drops them without `to`. False if the stream ends or fails before. */
  pass(size: number, to: Writable | undefined, signal: AbortSignal): Promise<boolean>;
}

export function createByteSource(stream: Readable): ByteSource {
  const chunks: AsyncIterator<Buffer, undefined> = stream[Symbol.asyncIterator]();
  const pending: Buffer[] = [];
  let available = 0;

  async function more(): Promise<boolean> {
    try {
      const { value } = await chunks.next();
      if (value === undefined) return false;
      pending.push(value);
      available += value.length;
      return true;
    } catch {
      // A reset connection is an end.
      return false;
    }
  }

  /** Removes the first chunk, or as much of it as is requested. */
  function shift(size: number): Buffer {
    const [first = Buffer.alloc(0)] = pending;
    if (first.length <= size) pending.shift();
    else pending[0] = first.subarray(size);
    const part = first.subarray(0, size);
    available -= part.length;
    return part;
  }

  async function fill(to: Buffer): Promise<boolean> {
    for (let at = 0; at < to.length; ) {
      if (available === 0 && !(await more())) return false;
      const part = shift(to.length - at);
      to.set(part, at);
      at += part.length;
    }
    return true;
  }

  return {
    async take(size) {
      if (pending[0] !== undefined && pending[0].length >= size) return shift(size);
      const all = Buffer.allocUnsafe(size);
      return (await fill(all)) ? all : undefined;
    },
    fill,
    async pass(size, to, signal) {
      for (let left = size; left > 0; ) {
        if (available === 0 && !(await more())) return false;
        const part = shift(left);
        left -= part.length;
        if (to !== undefined && !to.write(part)) await once(to, "drain", { signal });
      }
      return true;
    },
  };
}
