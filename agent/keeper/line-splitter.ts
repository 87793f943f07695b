const newline = 0x0a;

/** Passes on whole lines only, so that two streams into one log do not cut each other; longer ones than the limit go as they are. */
export function createLineSplitter(limitBytes: number, emit: (lines: Buffer) => void) {
  let rest: Buffer = Buffer.alloc(0);
  return {
    push(bytes: Buffer): void {
      const all = rest.byteLength === 0 ? bytes : Buffer.concat([rest, bytes]);
      const end = all.lastIndexOf(newline) + 1;
      rest = all.subarray(end);
      if (end > 0) emit(all.subarray(0, end));
      if (rest.byteLength > limitBytes) this.end();
    },
    end(): void {
      if (rest.byteLength > 0) emit(Buffer.concat([rest, Buffer.from("\n")]));
      rest = Buffer.alloc(0);
    },
  };
}
