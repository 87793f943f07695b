const newline = 0x0a;

/**
 * Emits complete lines only, so that two streams into one log do not cut each other's lines. A line longer than the
 * limit is emitted in parts.
 */
export function createLineSplitter(limitBytes: number, emit: (lines: Buffer) => void) {
  let partial: Buffer = Buffer.alloc(0);
  return {
    push(bytes: Buffer): void {
      const all = partial.byteLength === 0 ? bytes : Buffer.concat([partial, bytes]);
      const end = all.lastIndexOf(newline) + 1;
      partial = all.subarray(end);
      if (end > 0) emit(all.subarray(0, end));
      if (partial.byteLength > limitBytes) this.end();
    },
    end(): void {
      if (partial.byteLength > 0) emit(Buffer.concat([partial, Buffer.from("\n")]));
      partial = Buffer.alloc(0);
    },
  };
}
