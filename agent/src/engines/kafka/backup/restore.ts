import { readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { writeDurably } from "@holdfast/common/durable-file.ts";
import { syncPath } from "@holdfast/common/sync-path.ts";
import type { RestoreFacet } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { withPrivateProcess } from "../../private-process.ts";
import { format, prepareDirectory } from "../bootstrap.ts";
import { logDirectory, ownNumber, restoredFile } from "../layout.ts";
import { withSession } from "../session.ts";
import { readContents, type SnapshotContents, unpackedDirectory, unpackedLog, unpackSnapshot } from "./contents.ts";
import { startPrivateBroker } from "./private-broker.ts";
import { commitOffsets, createStoredTopics, passProducerIds, requireOffsets } from "./restored-cluster.ts";
import { snapshotStream } from "./snapshot.ts";

/** Kafka's checkpoint files. They describe the empty logs, so they are deleted when restored logs replace these. */
const checkpoints = [".kafka_cleanshutdown", "recovery-point-offset-checkpoint", "replication-offset-checkpoint"];

/**
 * Restores a snapshot into a new cluster of one broker, which later ones join. Kafka gives each record a new offset, so
 * the logs are not written through it: a private broker creates the topics, stops, and finds the restored segments in
 * their directories at its next start, at which it checks and indexes them as after a crash.
 */
export function createRestore(deps: EngineDeps): RestoreFacet {
  return {
    async unpack(instance, stream, bytes, signal) {
      if (stream !== snapshotStream) throw new Error(`a backup of Kafka has no ${stream}`);
      await prepareDirectory(deps, instance, signal);
      await unpackSnapshot(instance, bytes, signal);
    },
    async finish(instance, { target, report }, signal) {
      if (target.kind !== "backup_end") throw new Error("a snapshot can only be restored to the end of the backup");
      report({ step: "recovering", position: "", reachedTime: undefined });
      const contents = await readContents(instance);
      await format(deps, instance, ["--standalone"], signal);
      await withPrivateBroker(deps, instance, signal, () =>
        withSession(instance, signal, (session) => createStoredTopics(session, contents, signal)),
      );
      await placeLogs(instance, contents);
      await withPrivateBroker(deps, instance, signal, () =>
        withSession(instance, signal, async (session) => {
          await requireOffsets(session, contents);
          await commitOffsets(session, ownNumber(instance), contents, signal);
          await passProducerIds(session, contents);
        }),
      );
      await writeDurably(restoredFile(instance), "", 0o640);
      return { position: "", reachedTime: undefined, lockedUsers: [] };
    },
  };
}

export async function withPrivateBroker<T>(
  deps: EngineDeps,
  instance: Instance,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  return withPrivateProcess(await startPrivateBroker(deps, instance, signal), work);
}

/** Puts the unpacked logs in place of the empty ones. */
async function placeLogs(instance: Instance, { topics }: SnapshotContents): Promise<void> {
  const logs = logDirectory(instance);
  const starts: string[] = [];
  for (const [at, { name, partitions }] of topics.entries())
    for (const [partition, { start }] of partitions.entries()) {
      const directory = join(logs, `${name}-${partition}`);
      for (const file of await readdir(directory))
        if (file !== "partition.metadata") await rm(join(directory, file), { recursive: true });
      const unpacked = unpackedLog(instance, at, partition);
      for (const file of await readdir(unpacked)) await rename(join(unpacked, file), join(directory, file));
      await syncPath(directory);
      starts.push(`${name} ${partition} ${start}\n`);
    }
  for (const name of checkpoints) await rm(join(logs, name), { force: true });
  await writeDurably(join(logs, "log-start-offset-checkpoint"), `0\n${starts.length}\n${starts.join("")}`, 0o640);
  await rm(unpackedDirectory(instance), { recursive: true, force: true });
}
