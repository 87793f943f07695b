import { constants, createZstdCompress } from "node:zlib";

/** Memory for one piece, and its compressor. Both are reused for further pieces. */
export interface PieceBuffer {
  readonly bytes: Buffer;
  /**
   * Compresses a piece into a separate zstd frame, so that a part does not depend on earlier ones. One call at a time;
   * the result must be read to its end.
   */
  compress(piece: Buffer): AsyncIterable<Buffer>;
}

/** A fast level, since the machine's CPU belongs to its users. */
const level = 1;
const chunkBytes = 64 << 10;

export function createPieceBuffer(pieceBytes: number): PieceBuffer {
  const zstd = createZstdCompress({
    params: { [constants.ZSTD_c_compressionLevel]: level },
    // Each write is a frame.
    flush: constants.ZSTD_e_end,
    chunkSize: chunkBytes,
  });
  let wake = () => {};
  zstd.on("readable", () => wake());
  // The write callback reports the error.
  zstd.on("error", () => wake());
  const read = () => zstd.read() as Buffer | null;
  return {
    bytes: Buffer.allocUnsafeSlow(pieceBytes),
    async *compress(piece) {
      let outcome: { readonly error: Error | null | undefined } | undefined;
      zstd.write(piece, (error) => {
        outcome = { error };
        wake();
      });
      for (;;) {
        const readable = new Promise<void>((resolve) => void (wake = resolve));
        // The compressor continues when its output is read, so at most one chunk is buffered.
        for (let chunk = read(); chunk !== null; chunk = read()) yield chunk;
        if (outcome?.error != null) throw outcome.error;
        if (outcome !== undefined) return;
        await readable;
      }
    },
  };
}
