import { hash } from "node:crypto";
import { createByteReader } from "../sealed/byte-reader.ts";

/**
 * A step of a page map: digests of all pages of a backup's files, from which the next backup determines the changed
 * pages. The format is `HFPM1` and the page size (4 bytes, big-endian), then for each file the length of its path (2
 * bytes), the path, its size (6 bytes), and the digests of its pages.
 */
export type PageMapStep =
  | { readonly kind: "file"; readonly path: string; readonly size: number }
  /** Digests of the next pages of the file. */
  | { readonly kind: "digests"; readonly bytes: Buffer };

/** Size of a page digest: the first bytes of its SHA-256. */
export const digestBytes = 16;
const magic = Buffer.from("HFPM1");
/** Number of digests read at a time. */
const stepPages = 4_096;

export function pageMapHead(pageBytes: number): Buffer {
  const head = Buffer.alloc(magic.length + 4);
  magic.copy(head);
  head.writeUInt32BE(pageBytes, magic.length);
  return head;
}

export function pageMapFile(path: string, size: number): Buffer {
  const name = Buffer.from(path);
  const head = Buffer.alloc(2 + name.length + 6);
  head.writeUInt16BE(name.length);
  name.copy(head, 2);
  head.writeUIntBE(size, 2 + name.length, 6);
  return head;
}

/** Digests of complete pages, and of a last one that may be shorter. */
export function digestsOf(bytes: Buffer, pageBytes: number): Buffer {
  const digests = Buffer.allocUnsafe(Math.ceil(bytes.length / pageBytes) * digestBytes);
  for (let at = 0, to = 0; at < bytes.length; at += pageBytes, to += digestBytes)
    hash("sha256", bytes.subarray(at, at + pageBytes), "buffer").copy(digests, to, 0, digestBytes);
  return digests;
}

/** Reads a page map; throws if it is invalid or has another page size. */
export async function* readPageMap(map: AsyncIterable<Uint8Array>, pageBytes: number): AsyncGenerator<PageMapStep> {
  const reader = createByteReader(map);
  if (!(await reader.take(magic.length)).equals(magic)) throw new Error("not a page map");
  const size = (await reader.take(4)).readUInt32BE();
  if (size !== pageBytes) throw new Error(`the map has pages of ${size} bytes, not ${pageBytes}`);
  for (;;) {
    const length = await reader.takeUpTo(2);
    if (length.length === 0) return;
    if (length.length < 2) throw new Error("the map ends too early");
    const path = (await reader.take(length.readUInt16BE())).toString("utf8");
    const fileBytes = (await reader.take(6)).readUIntBE(0, 6);
    yield { kind: "file", path, size: fileBytes };
    const pages = Math.ceil(fileBytes / pageBytes);
    for (let page = 0; page < pages; page += stepPages)
      yield { kind: "digests", bytes: await reader.take(Math.min(stepPages, pages - page) * digestBytes) };
  }
}
