import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import type { PageLookup } from "@holdfast/common/backup/page-delta.ts";
import { digestBytes, readPageMap } from "@holdfast/common/backup/page-map.ts";

export interface PageSpool extends PageLookup {
  close(): Promise<void>;
}

/** Size of one read from the spool: the digests of 32 MiB in pages of 8 KiB. */
const windowBytes = 4_096 * digestBytes;

/**
 * Stores the page map of an earlier backup for lookup in any order, in an unlinked file that disappears after a crash.
 * The file takes 1/512 of the size of the data.
 */
export async function spoolPages(
  directory: string,
  map: AsyncIterable<Uint8Array>,
  pageBytes: number,
): Promise<PageSpool> {
  const path = join(directory, "backup.pages");
  const file = await open(path, "w+", 0o600);
  await rm(path);
  const files = new Map<string, { readonly at: number; readonly bytes: number }>();
  let end = 0;
  try {
    for await (const step of readPageMap(map, pageBytes)) {
      if (step.kind === "file")
        files.set(step.path, { at: end, bytes: Math.ceil(step.size / pageBytes) * digestBytes });
      else {
        await file.write(step.bytes, 0, step.bytes.length, end);
        end += step.bytes.length;
      }
    }
  } catch (error) {
    await file.close();
    throw error;
  }
  const window = Buffer.alloc(windowBytes);
  let [from, to] = [0, 0];

  return {
    async digests(name, first, count) {
      const found = files.get(name);
      if (found === undefined) return Buffer.alloc(0);
      const begin = found.at + Math.min(first * digestBytes, found.bytes);
      const until = found.at + Math.min((first + count) * digestBytes, found.bytes);
      if (begin < from || until > to) {
        const { bytesRead } = await file.read(window, 0, window.length, begin);
        [from, to] = [begin, begin + bytesRead];
        if (to < until) throw new Error("the spooled page map is incomplete");
      }
      return window.subarray(begin - from, until - from);
    },
    close: () => file.close(),
  };
}
