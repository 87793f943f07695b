import { lstat, opendir } from "node:fs/promises";
import { join } from "node:path";
import type { Instance } from "../engine-driver.ts";
import { bucketDirectory } from "./layout.ts";

export interface CountedBucket {
  readonly objects: number;
  readonly bytes: number;
}

/** Counts of a bucket's objects, which take long in a large bucket. */
export interface BucketCount {
  /** The last complete count; undefined before the first. Starts the next count if it is due. */
  last(instance: Instance): CountedBucket | undefined;
}

const everyMs = 60_000;
/** A count may take this share of the time. */
const share = 0.05;
/** Directory of the server's temporary files and of parts of uploads. */
const temporary = ".sgwtmp";

export function createBucketCount(now: () => number): BucketCount {
  let counted: CountedBucket | undefined;
  let dueAt = 0;

  async function count(bucket: string): Promise<void> {
    const startedAt = now();
    const found = { objects: 0, bytes: 0 };
    await add(bucket, found);
    counted = found;
    dueAt = startedAt + Math.max(everyMs, (now() - startedAt) / share);
  }

  return {
    last(instance) {
      if (now() < dueAt) return counted;
      dueAt = Infinity;
      // Objects may be deleted while they are counted; the next count is as good.
      count(bucketDirectory(instance)).catch(() => {
        dueAt = now() + everyMs;
      });
      return counted;
    },
  };
}

async function add(directory: string, found: { objects: number; bytes: number }): Promise<void> {
  for await (const entry of await opendir(directory)) {
    if (entry.name === temporary) continue;
    const path = join(directory, entry.name);
    if (entry.isDirectory()) await add(path, found);
    else if (entry.isFile()) {
      found.objects += 1;
      found.bytes += (await lstat(path)).size;
    }
  }
}
