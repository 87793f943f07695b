import { constants, createZstdCompress } from "node:zlib";

/** Memory for one piece, and what compresses it; both serve one piece after another. */
export interface PieceRoom {
  readonly bytes: Buffer;
  /** A zstd frame of its own: a part does not depend on those before it. One call at a time, read to its end. */
  compress(piece: Buffer): AsyncIterable<Buffer>;
}

/** Fast: the store and the engine share the machine with its users. */
const level = 1;
const chunkBytes = 64 << 10;

export function createPieceRoom(pieceBytes: number): PieceRoom {
  const zstd = createZstdCompress({
    params: { [constants.ZSTD_c_compressionLevel]: level },
    // Each write is a frame.
    flush: constants.ZSTD_e_end,
    chunkSize: chunkBytes,
  });
  let wake = () => {};
  zstd.on("readable", () => wake());
  // Whoever wrote is told.
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
        const more = new Promise<void>((resolve) => void (wake = resolve));
        // It goes on when what it has is read: no more than a chunk waits.
        for (let chunk = read(); chunk !== null; chunk = read()) yield chunk;
        if (outcome?.error != null) throw outcome.error;
        if (outcome !== undefined) return;
        await more;
      }
    },
  };
}
