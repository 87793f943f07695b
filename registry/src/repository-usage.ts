import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";

/** Sizes of the images of organizations. */
export interface RepositoryUsage {
  /** Bytes that the namespace may add; 0 or less if it has none left. */
  remaining(namespace: string): Promise<number>;
  /** Counts bytes that were written since the last measurement. */
  add(namespace: string, bytes: number): void;
}

interface Measured {
  readonly bytes: number;
  readonly at: number;
  written: number;
}

/** Time after which a measurement is repeated; bytes that are written between are counted as they arrive. */
const measuredMs = 60_000;
/** Least size of anything that is stored, so that the number of files is limited too. */
const leastBytes = 65_536;
const maxMeasured = 10_000;

/** Measures the directory of docker-registry by its documented layout (storage/paths.go of distribution). */
export function createRepositoryUsage(directory: string, limit: number, now: () => number): RepositoryUsage {
  const measured = new Map<string, Measured>();
  const root = join(directory, "docker", "registry", "v2");

  async function measure(namespace: string): Promise<Measured> {
    const digests = new Set<string>();
    let others = 0;
    for (const path of await filesBelow(join(root, "repositories", namespace))) {
      const [, digest] = /\/(?:_layers|revisions)\/sha256\/([0-9a-f]{64})\/link$/.exec(path) ?? [];
      if (digest !== undefined) digests.add(digest);
      else if (/\/_uploads\/[^/]+\/data$/.test(path)) others += await sizeOf(path);
      else if (/\/tags\/[^/]+\/current\/link$/.test(path)) others += leastBytes;
    }
    const sizes = await Promise.all(
      [...digests].map((digest) => sizeOf(join(root, "blobs", "sha256", digest.slice(0, 2), digest, "data"))),
    );
    return { bytes: sizes.reduce((sum, size) => sum + size, others), at: now(), written: 0 };
  }

  return {
    async remaining(namespace) {
      const known = measured.get(namespace);
      const isUsable = known !== undefined && now() - known.at < measuredMs && known.bytes + known.written < limit;
      const current = isUsable ? known : await measure(namespace);
      if (!isUsable) {
        measured.delete(namespace);
        measured.set(namespace, current);
        const [oldest] = measured.keys();
        if (measured.size > maxMeasured && oldest !== undefined) measured.delete(oldest);
      }
      return limit - current.bytes - current.written;
    },
    add(namespace, bytes) {
      const known = measured.get(namespace);
      if (known !== undefined) known.written += bytes;
    },
  };
}

async function filesBelow(directory: string): Promise<string[]> {
  try {
    const entries = await readdir(directory, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  } catch (error) {
    // Nothing was pushed yet, or a repository was deleted during the scan.
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  }
}

/** Size that counts for a file; 0 if it was deleted. */
async function sizeOf(path: string): Promise<number> {
  try {
    return Math.max((await stat(path)).size, leastBytes);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return 0;
    throw error;
  }
}
