import { once } from "node:events";
import { PassThrough } from "node:stream";
import { type ByteReader, createByteReader } from "../sealed/byte-reader.ts";
import { digestBytes, digestsOf, pageMapFile, pageMapHead } from "./page-map.ts";
import { readTarHeader, tarBlockBytes, tarPaddingOf } from "./tar-header.ts";

/** Page digests of the previous backup. */
export interface PageLookup {
  /**
   * Digests of up to `count` pages of a file, from page `first` on: fewer at its end, none for a file that did not
   * exist.
   */
  digests(path: string, first: number, count: number): Promise<Buffer>;
}

/** Two streams that must be read concurrently to their ends. */
export interface PageStreams {
  /** The tar unchanged, or its delta if there is a previous backup. */
  readonly content: AsyncIterable<Buffer>;
  /** The page map: a digest of each page (page-map.ts). */
  readonly map: AsyncIterable<Buffer>;
}

/**
 * A step of a delta: a tar without the pages that the previous backup has at the same position. The format is `HFPD1`
 * and the page size (4 bytes, big-endian), then the tar header of each entry. A file's header is followed by runs until
 * all of its pages are covered: the number of unchanged pages (4 bytes), the number of changed pages (4 bytes), and
 * these pages. A block of zeros ends the delta.
 */
export type DeltaStep =
  | { readonly kind: "directory"; readonly path: string; readonly mode: number }
  | { readonly kind: "file"; readonly path: string; readonly mode: number; readonly size: number }
  /** Unchanged byte range of the current file. */
  | { readonly kind: "same"; readonly from: number; readonly to: number }
  | { readonly kind: "changed"; readonly from: number; readonly bytes: Buffer };

const magic = Buffer.from("HFPD1");
/** Number of pages that are compared, or restored, at a time. */
const stepPages = 32;

export function splitPages(
  tar: AsyncIterable<Uint8Array>,
  pageBytes: number,
  previous: PageLookup | undefined,
): PageStreams {
  const map = new PassThrough({ highWaterMark: 1 << 20 });
  // The reader of the stream handles errors.
  map.on("error", () => undefined);

  async function writeMap(bytes: Buffer): Promise<void> {
    if (map.write(bytes)) return;
    await Promise.race([once(map, "drain"), once(map, "close")]);
  }

  async function* entries(): AsyncGenerator<Buffer> {
    const reader = createByteReader(tar);
    await writeMap(pageMapHead(pageBytes));
    if (previous !== undefined) yield deltaHead(pageBytes);
    for (;;) {
      const header = await reader.take(tarBlockBytes);
      const entry = readTarHeader(header);
      yield header;
      if (entry === undefined) break;
      const { kind, path, size } = entry;
      if (kind === "file") yield* pagesOf(reader, path, size);
      else if (previous === undefined) yield* bytesOf(reader, size);
      else if (kind === "other") throw new Error(`${path} is neither a file nor a directory`);
      const padding = await reader.take(tarPaddingOf(size));
      if (previous === undefined) yield padding;
    }
    for (;;) {
      const rest = await reader.takeUpTo(stepPages * pageBytes);
      if (rest.length === 0) return;
      if (previous === undefined) yield rest;
    }
  }

  async function* pagesOf(reader: ByteReader, path: string, size: number): AsyncGenerator<Buffer> {
    await writeMap(pageMapFile(path, size));
    const pages = Math.ceil(size / pageBytes);
    let same = 0;
    for (let first = 0; first < pages; first += stepPages) {
      const count = Math.min(stepPages, pages - first);
      const bytes = await reader.take(Math.min(count * pageBytes, size - first * pageBytes));
      const digests = digestsOf(bytes, pageBytes);
      await writeMap(digests);
      if (previous === undefined) {
        yield bytes;
        continue;
      }
      const earlier = await previous.digests(path, first, count);
      const isSame = (page: number) => {
        const [from, to] = [page * digestBytes, (page + 1) * digestBytes];
        return to <= earlier.length && digests.compare(earlier, from, to, from, to) === 0;
      };
      for (let page = 0; page < count; ) {
        if (isSame(page)) {
          [same, page] = [same + 1, page + 1];
          continue;
        }
        let end = page + 1;
        while (end < count && !isSame(end)) end += 1;
        yield runOf(same, end - page);
        yield bytes.subarray(page * pageBytes, end * pageBytes);
        [same, page] = [0, end];
      }
    }
    if (same > 0) yield runOf(same, 0);
  }

  async function* content(): AsyncGenerator<Buffer> {
    try {
      yield* entries();
      map.end();
    } catch (error) {
      map.destroy(error instanceof Error ? error : new Error(String(error)));
      throw error;
    }
  }
  return { content: content(), map };
}

/** Reads a delta of any page size; throws if it is invalid. */
export async function* readDelta(delta: AsyncIterable<Uint8Array>): AsyncGenerator<DeltaStep> {
  const reader = createByteReader(delta);
  if (!(await reader.take(magic.length)).equals(magic)) throw new Error("not a page delta");
  const pageBytes = (await reader.take(4)).readUInt32BE();
  if (pageBytes === 0) throw new Error("the delta has a page size of zero");
  for (;;) {
    const entry = readTarHeader(await reader.take(tarBlockBytes));
    if (entry === undefined) break;
    const { kind, path, mode, size } = entry;
    if (kind === "other") throw new Error(`${path} is neither a file nor a directory`);
    if (kind === "directory") {
      yield { kind, path, mode };
      continue;
    }
    yield { kind, path, mode, size };
    const pages = Math.ceil(size / pageBytes);
    for (let page = 0; page < pages; ) {
      const run = await reader.take(8);
      const [same, changed] = [run.readUInt32BE(0), run.readUInt32BE(4)];
      const end = page + same + changed;
      if (same + changed === 0 || end > pages) throw new Error(`a run of ${path} is invalid`);
      if (same > 0) yield { kind: "same", from: page * pageBytes, to: Math.min((page + same) * pageBytes, size) };
      for (page += same; page < end; page += Math.min(stepPages, end - page)) {
        const to = Math.min(page + stepPages, end) * pageBytes;
        const bytes = await reader.take(Math.min(to, size) - page * pageBytes);
        yield { kind: "changed", from: page * pageBytes, bytes };
      }
    }
  }
  if ((await reader.takeUpTo(1)).length > 0) throw new Error("bytes follow the end of the delta");
}

function deltaHead(pageBytes: number): Buffer {
  const head = Buffer.alloc(magic.length + 4);
  magic.copy(head);
  head.writeUInt32BE(pageBytes, magic.length);
  return head;
}

function runOf(same: number, changed: number): Buffer {
  const run = Buffer.alloc(8);
  run.writeUInt32BE(same, 0);
  run.writeUInt32BE(changed, 4);
  return run;
}

async function* bytesOf(reader: ByteReader, size: number): AsyncGenerator<Buffer> {
  const stepBytes = 1 << 18;
  for (let at = 0; at < size; at += stepBytes) yield await reader.take(Math.min(stepBytes, size - at));
}
