import { lstat, opendir } from "node:fs/promises";
import { join } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";
import type { Instance } from "../engine-driver.ts";
import { bucketDirectory, temporaryDirectory } from "./layout.ts";

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
      count(bucketDirectory(instance)).catch(() => {
        dueAt = now() + everyMs;
      });
      return counted;
    },
  };
}

async function add(directory: string, found: { objects: number; bytes: number }): Promise<void> {
  for await (const entry of await opendir(directory)) {
    if (entry.name === temporaryDirectory) continue;
    const path = join(directory, entry.name);
    try {
      if (entry.isDirectory()) await add(path, found);
      else if (entry.isFile()) {
        const { size } = await lstat(path);
        found.objects += 1;
        found.bytes += size;
      }
    } catch (error) {
      // A client deleted the object during the count: in a bucket with steady deletions no count would complete.
      if (!hasCode(error, "ENOENT")) throw error;
    }
  }
}
