import { type ByteReader, createByteReader } from "../sealed/byte-reader.ts";

const blockBytes = 512;

/**
 * A stream in pieces, the same bytes when joined; an empty one is an empty piece. A tar is cut where its files begin,
 * and a large file at multiples of the size from its own beginning: whatever else changed, files that did not are in
 * the same pieces another time. Each piece is the beginning of the buffer that `room` answered with, which is the same
 * one until there is a piece in it.
 */
export async function* piecesOf(
  name: string,
  source: AsyncIterable<Uint8Array>,
  room: () => Promise<Buffer>,
): AsyncGenerator<Buffer> {
  const reader = createByteReader(source);
  let isEmpty = true;
  if (name.endsWith(".tar"))
    for await (const piece of piecesOfTar(reader, room)) {
      isEmpty = false;
      yield piece;
    }
  for (;;) {
    const into = await room();
    const piece = into.subarray(0, await reader.fill(into));
    if (piece.length > 0 || isEmpty) yield piece;
    if (piece.length < into.length) return;
    isEmpty = false;
  }
}

/** Up to the end, or to what is no header of a file. */
async function* piecesOfTar(reader: ByteReader, room: () => Promise<Buffer>): AsyncGenerator<Buffer> {
  let into = await room();
  let held = 0;
  for (;;) {
    const header = await reader.takeUpTo(blockBytes);
    let left = header.length < blockBytes ? undefined : bodyBytes(header);
    if (held > 0 && held + header.length + (left ?? 0) > into.length) {
      yield into.subarray(0, held);
      into = await room();
      held = 0;
    }
    held += header.copy(into, held);
    if (left === undefined) {
      held += await reader.fill(into.subarray(held));
      if (held > 0) yield into.subarray(0, held);
      return;
    }
    while (left > 0) {
      const read = await reader.fill(into.subarray(held, held + left));
      if (read === 0) break;
      left -= read;
      held += read;
      if (held < into.length) continue;
      yield into;
      into = await room();
      held = 0;
    }
  }
}

/** Of the file behind a header, with its padding; undefined for what is no header. */
function bodyBytes(header: Buffer): number | undefined {
  const text = header.toString("latin1", 124, 136).replace(/[\0 ]+$/, "");
  if (!/^ *[0-7]*$/.test(text)) return undefined;
  return Math.ceil(Number.parseInt(text.trim() || "0", 8) / blockBytes) * blockBytes;
}
