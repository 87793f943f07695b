import { hash } from "node:crypto";
import { createByteReader } from "../sealed/byte-reader.ts";

/**
 * A digest of each page of each file of a backup, by which a later one knows what changed: `HFPM1` and the pages' size (4 bytes,
 * big-endian), then of each file the length of its path (2 bytes), the path, its size (6 bytes), and its pages' digests.
 */
export type PageMapStep =
  | { readonly kind: "file"; readonly path: string; readonly size: number }
  /** Of the pages that are next in the file. */
  | { readonly kind: "digests"; readonly bytes: Buffer };

/** Of a page: the first bytes of its SHA-256. */
export const digestBytes = 16;
const magic = Buffer.from("HFPM1");
/** So many pages at a time. */
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

/** Digests of whole pages, and of a last one that may be shorter. */
export function digestsOf(bytes: Buffer, pageBytes: number): Buffer {
  const digests = Buffer.allocUnsafe(Math.ceil(bytes.length / pageBytes) * digestBytes);
  for (let at = 0, to = 0; at < bytes.length; at += pageBytes, to += digestBytes)
    hash("sha256", bytes.subarray(at, at + pageBytes), "buffer").copy(digests, to, 0, digestBytes);
  return digests;
}

/** Reads a map; throws for what is none, and for one of pages of another size. */
export async function* readPageMap(map: AsyncIterable<Uint8Array>, pageBytes: number): AsyncGenerator<PageMapStep> {
  const reader = createByteReader(map);
  if (!(await reader.take(magic.length)).equals(magic)) throw new Error("not a map of pages");
  const size = (await reader.take(4)).readUInt32BE();
  if (size !== pageBytes) throw new Error(`the map is one of pages of ${size} bytes, not ${pageBytes}`);
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
