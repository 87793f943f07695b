import { constants, createZstdCompress } from "node:zlib";
import { type ByteReader, createByteReader } from "../sealed/byte-reader.ts";

const blockBytes = 512;

/**
 * Splits a stream into pieces, whose concatenation is the stream; an empty stream is one empty piece. A tar is split at
 * the start of its files, and a large file at multiples of the size from its start, so unchanged files are in the same
 * pieces in the next backup. Each piece is the start of the buffer that `nextBuffer` returned, which must return the
 * same buffer until a piece in it was yielded.
 */
export async function* piecesOf(
  name: string,
  source: AsyncIterable<Uint8Array>,
  nextBuffer: () => Promise<Buffer>,
): AsyncGenerator<Buffer> {
  const reader = createByteReader(source);
  let isEmpty = true;
  if (name.endsWith(".tar"))
    for await (const piece of piecesOfTar(reader, nextBuffer)) {
      isEmpty = false;
      yield piece;
    }
  for (;;) {
    const into = await nextBuffer();
    const piece = into.subarray(0, await reader.fill(into));
    if (piece.length > 0 || isEmpty) yield piece;
    if (piece.length < into.length) return;
    isEmpty = false;
  }
}

/** Splits up to the end of the stream or the first invalid tar header. */
async function* piecesOfTar(reader: ByteReader, nextBuffer: () => Promise<Buffer>): AsyncGenerator<Buffer> {
  let into = await nextBuffer();
  let filled = 0;
  for (;;) {
    const header = await reader.takeUpTo(blockBytes);
    let remaining = header.length < blockBytes ? undefined : bodyBytes(header);
    if (filled > 0 && filled + header.length + (remaining ?? 0) > into.length) {
      yield into.subarray(0, filled);
      into = await nextBuffer();
      filled = 0;
    }
    filled += header.copy(into, filled);
    if (remaining === undefined) {
      filled += await reader.fill(into.subarray(filled));
      if (filled > 0) yield into.subarray(0, filled);
      return;
    }
    while (remaining > 0) {
      const read = await reader.fill(into.subarray(filled, filled + remaining));
      if (read === 0) break;
      remaining -= read;
      filled += read;
      if (filled < into.length) continue;
      yield into;
      into = await nextBuffer();
      filled = 0;
    }
  }
}

/** Size of the file after a header, including padding; undefined if the block is not a header. */
function bodyBytes(header: Buffer): number | undefined {
  const text = header.toString("latin1", 124, 136).replace(/[\0 ]+$/, "");
  if (!/^ *[0-7]*$/.test(text)) return undefined;
  return Math.ceil(Number.parseInt(text.trim() || "0", 8) / blockBytes) * blockBytes;
}

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
