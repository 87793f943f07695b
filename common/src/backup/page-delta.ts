import { once } from "node:events";
import { PassThrough } from "node:stream";
import { type ByteReader, createByteReader } from "../sealed/byte-reader.ts";
import { digestBytes, digestsOf, pageMapFile, pageMapHead } from "./page-map.ts";
import { readTarHeader, tarBlockBytes, tarPaddingOf } from "./tar-header.ts";

/** What an earlier backup had. */
export interface PageLookup {
  /** Digests of pages of a file, from one on, at most so many: fewer behind its end, none of a file that was not there. */
  digests(path: string, first: number, count: number): Promise<Buffer>;
}

/** Both are to be read at the same time, to their ends. */
export interface PageStreams {
  /** The tar as it is; or its delta, where there is something to tell it from. */
  readonly content: AsyncIterable<Buffer>;
  /** A digest of each page (page-map.ts). */
  readonly map: AsyncIterable<Buffer>;
}

/**
 * A tar without the pages that an earlier backup has at the same place: `HFPD1` and the pages' size (4 bytes, big-endian), then the
 * header of each entry as the tar has it. A file's header is followed by runs until all of its pages were told: how many are
 * as they were (4 bytes), how many follow (4 bytes), and these. A block of zeros ends it.
 */
export type DeltaStep =
  | { readonly kind: "directory"; readonly path: string; readonly mode: number }
  | { readonly kind: "file"; readonly path: string; readonly mode: number; readonly size: number }
  /** Of the file that was named last: bytes that stay as they were. */
  | { readonly kind: "same"; readonly from: number; readonly to: number }
  | { readonly kind: "changed"; readonly from: number; readonly bytes: Buffer };

const magic = Buffer.from("HFPD1");
/** So many pages are looked at together, or brought back. */
const stepPages = 32;

export function splitPages(
  tar: AsyncIterable<Uint8Array>,
  pageBytes: number,
  before: PageLookup | undefined,
): PageStreams {
  const map = new PassThrough({ highWaterMark: 1 << 20 });
  // The reader of the stream handles the error.
  map.on("error", () => undefined);

  async function note(bytes: Buffer): Promise<void> {
    if (map.write(bytes)) return;
    await Promise.race([once(map, "drain"), once(map, "close")]);
  }

  async function* told(): AsyncGenerator<Buffer> {
    const reader = createByteReader(tar);
    await note(pageMapHead(pageBytes));
    if (before !== undefined) yield deltaHead(pageBytes);
    for (;;) {
      const header = await reader.take(tarBlockBytes);
      const entry = readTarHeader(header);
      yield header;
      if (entry === undefined) break;
      const { kind, path, size } = entry;
      if (kind === "file") yield* pagesOf(reader, path, size);
      else if (before === undefined) yield* bytesOf(reader, size);
      else if (kind === "other") throw new Error(`${path} is neither a file nor a directory`);
      const padding = await reader.take(tarPaddingOf(size));
      if (before === undefined) yield padding;
    }
    for (;;) {
      const rest = await reader.takeUpTo(stepPages * pageBytes);
      if (rest.length === 0) return;
      if (before === undefined) yield rest;
    }
  }

  async function* pagesOf(reader: ByteReader, path: string, size: number): AsyncGenerator<Buffer> {
    await note(pageMapFile(path, size));
    const pages = Math.ceil(size / pageBytes);
    let same = 0;
    for (let first = 0; first < pages; first += stepPages) {
      const count = Math.min(stepPages, pages - first);
      const bytes = await reader.take(Math.min(count * pageBytes, size - first * pageBytes));
      const digests = digestsOf(bytes, pageBytes);
      await note(digests);
      if (before === undefined) {
        yield bytes;
        continue;
      }
      const earlier = await before.digests(path, first, count);
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
      yield* told();
      map.end();
    } catch (error) {
      map.destroy(error instanceof Error ? error : new Error(String(error)));
      throw error;
    }
  }
  return { content: content(), map };
}

/** Reads a delta; throws for what is none. Its pages may be of any size. */
export async function* readDelta(delta: AsyncIterable<Uint8Array>): AsyncGenerator<DeltaStep> {
  const reader = createByteReader(delta);
  if (!(await reader.take(magic.length)).equals(magic)) throw new Error("not a delta of pages");
  const pageBytes = (await reader.take(4)).readUInt32BE();
  if (pageBytes === 0) throw new Error("the delta has pages without a size");
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
      if (same + changed === 0 || end > pages) throw new Error(`a run of ${path} is impossible`);
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
  const most = 1 << 18;
  for (let at = 0; at < size; at += most) yield await reader.take(Math.min(most, size - at));
}
