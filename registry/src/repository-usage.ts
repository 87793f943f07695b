import type { ObjectFacts, ObjectStore } from "@holdfast/common/objects/object-store.ts";

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
const pageSize = 1_000;
const concurrentHeads = 32;

/** Measures the files of docker-registry by its documented layout (storage/paths.go of distribution). */
export function createRepositoryUsage(
  objects: Pick<ObjectStore, "list" | "head">,
  limit: number,
  now: () => number,
): RepositoryUsage {
  const measured = new Map<string, Measured>();
  const root = "docker/registry/v2";

  async function measure(namespace: string): Promise<Measured> {
    const digests = new Set<string>();
    let others = 0;
    for await (const { key, sizeBytes } of listed(`${root}/repositories/${namespace}/`)) {
      const [, digest] = /\/(?:_layers|revisions)\/sha256\/([0-9a-f]{64})\/link$/.exec(key) ?? [];
      if (digest !== undefined) digests.add(digest);
      else if (/\/_uploads\/[^/]+\/data$/.test(key)) others += Math.max(sizeBytes, leastBytes);
      else if (/\/tags\/[^/]+\/current\/link$/.test(key)) others += leastBytes;
    }
    let bytes = others;
    const remaining = [...digests];
    while (remaining.length > 0) {
      const sizes = await Promise.all(remaining.splice(0, concurrentHeads).map(sizeOf));
      bytes = sizes.reduce((sum, size) => sum + size, bytes);
    }
    return { bytes, at: now(), written: 0 };
  }

  async function* listed(prefix: string): AsyncGenerator<ObjectFacts> {
    let after = "";
    for (let more = true; more; ) {
      const page = await objects.list(prefix, { after, limit: pageSize });
      yield* page.objects;
      after = page.objects.at(-1)?.key ?? after;
      more = page.more;
    }
  }

  /** Size that counts for a layer; 0 if it was deleted. */
  async function sizeOf(digest: string): Promise<number> {
    const facts = await objects.head(`${root}/blobs/sha256/${digest.slice(0, 2)}/${digest}/data`);
    return facts === undefined ? 0 : Math.max(facts.sizeBytes, leastBytes);
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
