import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { writeDurably } from "@holdfast/common/durable-file.ts";
import type { RestoreFacet } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { call } from "../api.ts";
import { markForming, prepareDirectory } from "../bootstrap.ts";
import { ownNumber, repositoryDirectory, restoredFile } from "../layout.ts";
import { persistentSettings, putSettings } from "../membership.ts";
import { withPrivateEngine } from "./private-engine.ts";
import { openRepository, readSnapshot, requireSuccess, snapshotPath, unregister } from "./repository.ts";
import { whileReporting } from "./restore-progress.ts";
import { writeRepository } from "./repository-files.ts";
import { snapshotStream } from "./snapshot.ts";

/** Numbers of restored objects, for their examination. */
export interface Restored {
  readonly indices: number;
  readonly shards: number;
}

/**
 * Restores a snapshot into a new cluster of one member, by the engine's own API. Its security index is a new one: users
 * are created from the settings when the member starts.
 */
export function createRestore(deps: EngineDeps): RestoreFacet {
  return {
    async unpack(instance, stream, bytes, signal) {
      if (stream !== snapshotStream) throw new Error(`a backup of OpenSearch has no ${stream}`);
      await prepareDirectory(deps, instance, signal);
      await markForming(deps, instance, [ownNumber(instance)], signal);
      await writeRepository(repositoryDirectory(instance), bytes, signal);
    },
    async finish(instance, { target, report }, signal) {
      if (target.kind !== "backup_end") throw new Error("a snapshot can only be restored to the end of the backup");
      const progress = (position: string) => report({ step: "recovering", position, reachedTime: undefined });
      progress("");
      const restored = await withPrivateEngine(deps, instance, signal, async () => {
        await openRepository(instance, signal);
        const found = await restoreAll(deps, instance, progress, signal);
        await removeStoredSettings(instance, signal);
        await unregister(instance, signal);
        return found;
      });
      await deps.run(["rm", "-rf", repositoryDirectory(instance)], { signal });
      await writeDurably(restoredFile(instance), JSON.stringify(restored), 0o640);
      return { position: "", reachedTime: undefined, lockedUsers: [] };
    },
  };
}

/** Parameters are those of the copy, and nothing of the source's members remains. */
async function removeStoredSettings(instance: Instance, signal: AbortSignal): Promise<void> {
  const names = Object.keys(await persistentSettings(instance, signal));
  if (names.length > 0) await putSettings(instance, Object.fromEntries(names.map((name) => [name, null])), signal);
}

/**
 * Restores the settings of the cluster, then each data stream with its indices, and each other index. The files of each
 * are removed before the next, so that the disk has to have space for the data and the largest index, and not for all
 * data twice.
 */
async function restoreAll(
  deps: EngineDeps,
  instance: Instance,
  progress: (position: string) => void,
  signal: AbortSignal,
): Promise<Restored> {
  const snapshot = await readSnapshot(instance, signal);
  requireSuccess(snapshot);
  const directories = await indexDirectories(instance);
  const free = async (indices: readonly string[]) => {
    const paths = indices.flatMap((name) => directories.get(name) ?? []);
    if (paths.length > 0) await deps.run(["rm", "-rf", ...paths], { signal });
  };
  const done = new Set<string>();
  let shards = 0;
  const restoreNext = async (body: object) => {
    const position = `${done.size} of ${snapshot.indices.length} indices`;
    const report = (bytes: number) => progress(`${position}, ${bytes} bytes`);
    progress(position);
    shards += await whileReporting(instance, report, () => restore(instance, body, signal), signal);
  };
  await restoreNext({ indices: "-*", ignore_unavailable: true, include_global_state: true });
  for (const stream of snapshot.data_streams ?? []) {
    await restoreNext({ indices: stream, include_global_state: false });
    const indices = await indicesOf(instance, stream, signal);
    for (const name of indices) done.add(name);
    await free(indices);
  }
  for (const name of snapshot.indices) {
    if (done.has(name)) continue;
    await restoreNext({ indices: name, include_global_state: false, include_aliases: true });
    done.add(name);
    await free([name]);
  }
  return { indices: snapshot.indices.length, shards };
}

/** Resolves with the number of restored shards. Their files are verified by their checksums. */
async function restore(instance: Instance, body: object, signal: AbortSignal): Promise<number> {
  const path = `${snapshotPath}/_restore?wait_for_completion=true`;
  const answer = (await call(instance, { method: "POST", path, body }, signal)) as {
    snapshot?: { indices: readonly string[]; shards: { total: number; successful: number } };
  };
  const { indices = [], shards = { total: 0, successful: 0 } } = answer.snapshot ?? {};
  if (shards.successful < shards.total)
    throw new Error(`${shards.total - shards.successful} of ${shards.total} shards of ${indices.join()} failed`);
  return shards.total;
}

async function indicesOf(instance: Instance, stream: string, signal: AbortSignal): Promise<string[]> {
  const path = `/_data_stream/${encodeURIComponent(stream)}`;
  const answer = (await call(instance, { method: "GET", path }, signal)) as {
    data_streams: readonly { readonly indices: readonly { readonly index_name: string }[] }[];
  };
  return answer.data_streams.flatMap(({ indices }) => indices.map(({ index_name: name }) => name));
}

/** Directory of each index in the repository, by the newest of the repository's own lists (`index-<number>`). */
async function indexDirectories(instance: Instance): Promise<ReadonlyMap<string, string>> {
  const root = repositoryDirectory(instance);
  const numbers = (await readdir(root)).flatMap((name) => /^index-(\d+)$/.exec(name)?.[1] ?? []).map(Number);
  if (numbers.length === 0) throw new Error("the backup has no list of its indices");
  const text = await readFile(join(root, `index-${Math.max(...numbers)}`), "utf8");
  const { indices } = JSON.parse(text) as { indices: Readonly<Record<string, { readonly id: string }>> };
  return new Map(Object.entries(indices).map(([name, { id }]) => [name, join(root, "indices", id)]));
}
