import { createZstdCompress } from "node:zlib";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { History } from "#kernel/history/history.ts";
import { dumpHistory } from "#kernel/history/history-dump.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import { type Keyring, subkey } from "#kernel/secrets/sealer.ts";
import { root } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import { sealStream } from "@holdfast/common/sealed/sealed-stream.ts";
import { linesToBytes, type SnapshotLine, snapshotFormat, snapshotPrefix } from "./snapshot-line.ts";
import { through } from "@holdfast/common/sealed/through.ts";

export interface SnapshotDeps {
  readonly store: Store;
  readonly history: Pick<History, "database">;
  readonly objects: ObjectStore;
  readonly keyring: Keyring;
  readonly installationId: string;
  readonly clock: Clock;
  readonly log: Log;
}

export interface SnapshotFacts {
  /** The object's key. */
  readonly id: string;
  readonly sizeBytes: number;
  readonly createdAt: number;
}

/**
 * Writes all that the control plane knows to the object store, sealed: etcd at one revision, without what hangs on a lease,
 * and the history. The authority and every secret are in etcd, sealed once more. It takes the master key to open it. With
 * the history away the snapshot is taken without it.
 */
export async function takeSnapshot(deps: SnapshotDeps, signal?: AbortSignal): Promise<SnapshotFacts> {
  const { objects, keyring, clock } = deps;
  const createdAt = clock.now();
  const id = `${snapshotPrefix}${new Date(createdAt).toISOString().replaceAll(":", "-")}.sealed`;
  const compressed = through(linesToBytes(snapshotLines(deps, createdAt, signal)), createZstdCompress());
  const header = { format: snapshotFormat, keyVersion: keyring.current };
  const sealed = sealStream(compressed, header, snapshotKeyOf(keyring));
  const { sizeBytes } = await objects.put(id, sealed, { ifAbsent: true, ...(signal && { signal }) });
  return { id, sizeBytes, createdAt };
}

export function snapshotKeyOf(keyring: Keyring): (version: string) => Uint8Array {
  return (version) => {
    const key = keyring.keys.get(version);
    if (key === undefined) throw new Error(`the snapshot is sealed under master key ${version}, which is not here`);
    return subkey(key, "snapshot");
  };
}

async function* snapshotLines(
  { store, history, installationId, log }: SnapshotDeps,
  createdAt: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<SnapshotLine> {
  let keys = 0;
  let rows = 0;
  const revision = await store.revision(signal);
  yield { line: "begin", installationId, createdAt, revision: revision.toString() };
  for (let after: string | undefined, more = true; more; ) {
    const page = await store.list(`${root}/`, { limit: 500, revision, ...(after !== undefined && { after }) }, signal);
    for (const { key, value, leased } of page.values) {
      if (leased) continue;
      keys += 1;
      yield { line: "key", key, value };
    }
    after = page.values.at(-1)?.key;
    more = page.more;
  }
  let whole = true;
  try {
    for await (const { table, row } of dumpHistory(history.database)) {
      signal?.throwIfAborted();
      rows += 1;
      yield { line: "row", table, row };
    }
  } catch (error) {
    signal?.throwIfAborted();
    whole = false;
    log.warn("snapshot without all of the history", { rows, error: String(error) });
  }
  yield { line: "end", keys, rows, history: whole };
}
