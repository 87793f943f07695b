import { writeDurably, readIfExists } from "@holdfast/common/durable-file.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";

/**
 * Finds manifests that nothing needs and deletes them: no tag has them, no deployment of an app has them, no manifest
 * for several platforms names them, and all of that has been so for a day. Runs while docker-registry does not, so that
 * no image changes during it. Their layers are left to docker-registry's own collection of garbage.
 */
export interface ImageSweep {
  /** Resolves with the number of deleted manifests. Rejects when the signal aborts; the next sweep continues. */
  run(signal: AbortSignal): Promise<number>;
}

export interface ImageSweepDeps {
  readonly objects: Pick<ObjectStore, "list" | "get">;
  /** Selects the digests that a deployment has. Rejects if no controller responds. */
  readonly neededOf: (digests: readonly string[]) => Promise<readonly string[]>;
  /** Deletes directories of docker-registry with all that is in them. */
  readonly deleteDirectories: (names: readonly string[]) => Promise<void>;
  /** File with the time since when each manifest is not needed. */
  readonly stateFile: string;
  readonly now: () => number;
}

/** Manifests of a repository, from the names of its files. */
interface Repository {
  readonly name: string;
  readonly digests: Set<string>;
  /** Files with the digests that tags have. */
  readonly tagFiles: string[];
  /** Directories of earlier digests of tags, by the digest. */
  readonly tagIndexes: Map<string, string[]>;
}

/** Time for which a manifest is retained after nothing needs it any more. */
export const graceMs = 24 * 3_600_000;
const root = "docker/registry/v2";
const pageSize = 1_000;
/** Largest number of digests in a question to a controller. */
const digestsMax = 500;
/** Manifests that wait for their deletion; others begin to wait when these are deleted. */
const waitingMax = 10_000;
/** Largest manifest that docker-registry accepts. */
const maxManifestBytes = 4 << 20;
const manifestName =
  /^(.+)\/_manifests\/(?:revisions|tags\/([^/]+)\/(?:current|index))\/(?:sha256\/([0-9a-f]{64})\/)?link$/;

export function createImageSweep({ objects, neededOf, deleteDirectories, stateFile, now }: ImageSweepDeps): ImageSweep {
  /** Repositories one after another: the names of a repository's files follow each other. */
  async function* repositories(signal: AbortSignal): AsyncGenerator<Repository> {
    const prefix = `${root}/repositories/`;
    let current: Repository | undefined;
    let after = "";
    for (let more = true; more; ) {
      signal.throwIfAborted();
      const page = await objects.list(prefix, { after, limit: pageSize });
      for (const { key } of page.objects) {
        const [, name, tag, hex] = manifestName.exec(key) ?? [];
        if (name === undefined) continue;
        if (current?.name !== name) {
          if (current !== undefined) yield current;
          current = { name, digests: new Set(), tagFiles: [], tagIndexes: new Map() };
        }
        if (tag === undefined && hex !== undefined) current.digests.add(`sha256:${hex}`);
        else if (tag !== undefined && hex === undefined) current.tagFiles.push(key);
        else if (hex !== undefined) addTo(current.tagIndexes, `sha256:${hex}`, key.slice(0, -"/link".length));
      }
      after = page.objects.at(-1)?.key ?? after;
      more = page.more;
    }
    if (current !== undefined) yield current;
  }

  async function textOf(key: string): Promise<string> {
    const parts: Buffer[] = [];
    let size = 0;
    for await (const part of (await objects.get(key)) ?? []) {
      size += part.length;
      if (size > maxManifestBytes) throw new Error(`${key} is too large`);
      parts.push(part);
    }
    return Buffer.concat(parts).toString("utf8");
  }

  /** Adds the digests that a manifest for several platforms names. */
  async function addNamed(digest: string, retained: Set<string>, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    retained.add(digest);
    const hex = digest.slice("sha256:".length);
    const text = await textOf(`${root}/blobs/sha256/${hex.slice(0, 2)}/${hex}/data`);
    if (!text.includes('"manifests"')) return;
    const named = new Set(text.match(/sha256:[0-9a-f]{64}/g));
    for (const each of named) if (!retained.has(each)) await addNamed(each, retained, signal);
  }

  /** The manifests of the repository that nothing needs now. */
  async function unneededOf({ digests, tagFiles }: Repository, signal: AbortSignal): Promise<string[]> {
    const tagged = new Set(await Promise.all(tagFiles.map(async (key) => (await textOf(key)).trim())));
    const untagged = [...digests].filter((digest) => !tagged.has(digest));
    if (untagged.length === 0) return [];
    const needed: string[] = [];
    for (let from = 0; from < untagged.length; from += digestsMax)
      needed.push(...(await neededOf(untagged.slice(from, from + digestsMax))));
    const retained = new Set<string>();
    for (const digest of [...tagged, ...needed]) if (!retained.has(digest)) await addNamed(digest, retained, signal);
    return untagged.filter((digest) => !retained.has(digest));
  }

  return {
    async run(signal) {
      const before = await readState(stateFile);
      const after = new Map<string, number>();
      let deleted = 0;
      for await (const repository of repositories(signal)) {
        const { name, tagIndexes } = repository;
        const due: string[] = [];
        for (const digest of await unneededOf(repository, signal)) {
          const id = `${name.slice(`${root}/repositories/`.length)}@${digest}`;
          const since = before.get(id) ?? now();
          if (now() - since >= graceMs) due.push(digest);
          else if (after.size < waitingMax) after.set(id, since);
        }
        signal.throwIfAborted();
        // Links of tags first: without the manifest's own link, a next sweep would not find them.
        const hexOf = (digest: string) => digest.slice("sha256:".length);
        const links = due.flatMap((digest) => tagIndexes.get(digest) ?? []);
        const revisions = due.map((digest) => `${name}/_manifests/revisions/sha256/${hexOf(digest)}`);
        if (due.length > 0) await deleteDirectories([...links, ...revisions]);
        deleted += due.length;
      }
      await writeDurably(stateFile, JSON.stringify(Object.fromEntries(after)));
      return deleted;
    },
  };
}

function addTo(lists: Map<string, string[]>, name: string, value: string): void {
  const list = lists.get(name);
  if (list === undefined) lists.set(name, [value]);
  else list.push(value);
}

async function readState(file: string): Promise<ReadonlyMap<string, number>> {
  const text = (await readIfExists(file))?.toString("utf8");
  return new Map(Object.entries(JSON.parse(text ?? "{}") as Record<string, number>));
}
