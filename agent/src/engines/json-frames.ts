import { createByteReader } from "@holdfast/common/sealed/byte-reader.ts";

/*
 * A stream of frames: the length of a JSON document in 4 bytes (big-endian), the document, which is the frame's header,
 * and the bytes that the header announces.
 */

const maxHeaderBytes = 16 << 20;

/** Encodes a header; its bytes follow separately. */
export function jsonFrame(header: object): Buffer {
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(text.length);
  return Buffer.concat([length, text]);
}

/** The frames of a stream, up to one of kind `end`; throws for a stream that ends without it. */
export async function* readJsonFrames<H extends { readonly kind: string }>(
  bytes: AsyncIterable<Uint8Array>,
  contentBytes: (header: H) => number,
): AsyncGenerator<{ readonly header: H; readonly content: Buffer }> {
  const reader = createByteReader(bytes);
  for (;;) {
    const length = (await reader.take(4)).readUInt32BE();
    if (length > maxHeaderBytes) throw new Error("the stream has no frames");
    const header = JSON.parse((await reader.take(length)).toString()) as H;
    const count = contentBytes(header);
    yield { header, content: count > 0 ? await reader.take(count) : Buffer.alloc(0) };
    if (header.kind === "end") return;
  }
}
