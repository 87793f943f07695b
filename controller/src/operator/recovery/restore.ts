import { createZstdDecompress } from "node:zlib";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import { openStream, pipeThrough } from "@holdfast/common/sealed/sealed-stream.ts";
import { type AutomationPause, pausePrefix } from "#kernel/clock/automation-pauses.ts";
import type { History } from "#kernel/history/history.ts";
import { type HistoryRow, loadHistory, resumeSequences } from "#kernel/history/history-dump.ts";
import type { Keyring } from "#kernel/secrets/sealer.ts";
import type { AnyKind } from "#kernel/store/kind.ts";
import { prefixOf, root } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import { snapshotKeyOf, bytesToLines, type SnapshotLine, snapshotFormat } from "./snapshot.ts";

export interface RestoreDeps {
  readonly store: Store;
  readonly history: Pick<History, "database" | "ready">;
  readonly objects: ObjectStore;
  readonly keyring: Keyring;
  /** Kinds with `afterRestore`. */
  readonly kinds: readonly AnyKind[];
  readonly clock: Clock;
  readonly log: Log;
}

export interface Restored {
  readonly installationId: string;
  /** Time of the snapshot, in milliseconds since 1970. */
  readonly createdAt: number;
  readonly keys: number;
  readonly rows: number;
}

const batchKeys = 100;
const batchBytes = 500_000;
const batchRows = 500;

/**
 * Restores a snapshot into an empty etcd, while controllers are stopped. The entire snapshot is opened and counted
 * before the first write. The first write sets the pause "restored", so that sweeps and expiry remain off until an
 * operator releases it. Terms are raised above all terms that agents can have. An interrupted restore is repeated by
 * the same call.
 */
export async function restoreControlPlane(deps: RestoreDeps, id: string, signal?: AbortSignal): Promise<Restored> {
  const { store, history, clock, log } = deps;
  await requireEmpty(store, signal);
  let facts: Restored | undefined;
  for await (const line of linesOf(deps, id)) facts = counted(facts, line);
  if (facts === undefined) throw new Error("the snapshot lacks its first line");

  const since = clock.now();
  await setPause(store, { kind: "restored", reason: unfinishedReason, since, until: null }, signal);
  await history.ready;
  let puts: { key: string; value: string }[] = [];
  let bytes = 0;
  let rows: HistoryRow[] = [];
  const flush = async () => {
    if (puts.length > 0) await store.commit({ conditions: [], puts, deletes: [] }, signal);
    if (rows.length > 0) await loadHistory(history.database, rows);
    [puts, rows, bytes] = [[], [], 0];
  };
  for await (const line of linesOf(deps, id)) {
    signal?.throwIfAborted();
    if (line.line === "row") rows.push(line);
    if (line.line === "key" && line.key !== restoredKey) {
      const put = { key: line.key, value: restoredValue(deps.kinds, line) };
      if (bytes + put.value.length > batchBytes) await flush();
      puts.push(put);
      bytes += put.value.length;
    }
    if (puts.length >= batchKeys || rows.length >= batchRows) await flush();
  }
  await flush();
  await resumeSequences(history.database);
  const reason = `The control plane was restored to ${new Date(facts.createdAt).toISOString()}. Compare machines and services, then run \`holdfast admin resume-automation restored\`.`;
  await setPause(store, { kind: "restored", reason, since, until: null }, signal);
  log.info("control plane restored", { snapshot: id, keys: facts.keys, rows: facts.rows });
  return facts;
}

const unfinishedReason = "A restore of the control plane has not finished. Run it again.";
const restoredKey = `${pausePrefix}restored`;

async function requireEmpty(store: Store, signal: AbortSignal | undefined): Promise<void> {
  const pause = await store.get(restoredKey, signal);
  if (pause !== undefined && (JSON.parse(pause.value) as AutomationPause).reason === unfinishedReason) return;
  const { values } = await store.list(`${root}/`, { limit: 500 }, signal);
  const existing = values.find(({ leased }) => !leased);
  if (existing !== undefined) throw new Error(`the store is not empty: it has ${existing.key}`);
}

function setPause(store: Store, pause: AutomationPause, signal: AbortSignal | undefined) {
  return store.commit(
    { conditions: [], puts: [{ key: restoredKey, value: JSON.stringify(pause) }], deletes: [] },
    signal,
  );
}

async function* linesOf({ objects, keyring }: RestoreDeps, id: string): AsyncGenerator<SnapshotLine> {
  const sealed = await objects.get(id);
  if (sealed === undefined) throw new Error(`the object store has no snapshot ${id}`);
  const opened = openStream(sealed, { format: snapshotFormat }, snapshotKeyOf(keyring));
  yield* bytesToLines(pipeThrough(opened, createZstdDecompress()));
}

function counted(facts: Restored | undefined, line: SnapshotLine): Restored | undefined {
  if (line.line === "begin") {
    return { installationId: line.installationId, createdAt: line.createdAt, keys: 0, rows: 0 };
  }
  return line.line === "end" && facts !== undefined ? { ...facts, keys: line.keys, rows: line.rows } : facts;
}

function restoredValue(kinds: readonly AnyKind[], { key, value }: { key: string; value: string }): string {
  const kind = kinds.find((each) => key.startsWith(prefixOf(each)));
  return kind?.afterRestore === undefined ? value : kind.format(kind.afterRestore(kind.parse(value)));
}
