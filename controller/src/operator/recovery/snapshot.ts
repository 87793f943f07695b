import { createZstdCompress } from "node:zlib";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { ObjectStore, ObjectFacts } from "@holdfast/common/objects/object-store.ts";
import { pipeThrough, sealStream } from "@holdfast/common/sealed/sealed-stream.ts";
import type { History } from "#kernel/history/history.ts";
import { dumpHistory } from "#kernel/history/history-dump.ts";
import { type Keyring, subkey } from "#kernel/secrets/sealer.ts";
import { root } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import { again, type Reconciler } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";

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
  /** Key of the object. */
  readonly id: string;
  readonly sizeBytes: number;
  readonly createdAt: number;
}

/**
 * Writes a snapshot of the control plane to the object store: etcd at one revision, without leased keys, and the
 * history. It is sealed under the master key; the authority and all secrets in etcd have an additional seal. If the
 * history is unavailable, the snapshot does not contain it.
 */
export async function backUpControlPlane(deps: SnapshotDeps, signal?: AbortSignal): Promise<SnapshotFacts> {
  const { objects, keyring, clock } = deps;
  const createdAt = clock.now();
  const id = `${snapshotPrefix}${new Date(createdAt).toISOString().replaceAll(":", "-")}.sealed`;
  const compressed = pipeThrough(linesToBytes(snapshotLines(deps, createdAt, signal)), createZstdCompress());
  const header = { format: snapshotFormat, keyVersion: keyring.current };
  const sealed = sealStream(compressed, header, snapshotKeyOf(keyring));
  const { sizeBytes } = await objects.put(id, sealed, { ifAbsent: true, ...(signal && { signal }) });
  return { id, sizeBytes, createdAt };
}

export function snapshotKeyOf(keyring: Keyring): (version: string) => Uint8Array {
  return (version) => {
    const key = keyring.keys.get(version);
    if (key === undefined)
      throw new Error(`the snapshot is sealed under master key ${version}, which is not in the key file`);
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
  let isComplete = true;
  try {
    for await (const { table, row } of dumpHistory(history.database)) {
      signal?.throwIfAborted();
      rows += 1;
      yield { line: "row", table, row };
    }
  } catch (error) {
    signal?.throwIfAborted();
    isComplete = false;
    log.warn("snapshot without the complete history", { rows, error: String(error) });
  }
  yield { line: "end", keys, rows, history: isComplete };
}

/** A snapshot of the control plane: JSON lines (one `begin`, keys, rows, one `end`), compressed and sealed. */
export type SnapshotLine =
  | { readonly line: "begin"; readonly installationId: string; readonly createdAt: number; readonly revision: string }
  | { readonly line: "key"; readonly key: string; readonly value: string }
  | { readonly line: "row"; readonly table: string; readonly row: Readonly<Record<string, unknown>> }
  | { readonly line: "end"; readonly keys: number; readonly rows: number; readonly history: boolean };

export const snapshotFormat = "holdfast control plane 1";
const snapshotPrefix = "control-plane/";

async function* linesToBytes(lines: AsyncIterable<SnapshotLine>): AsyncGenerator<Buffer> {
  for await (const line of lines) yield Buffer.from(`${JSON.stringify(line)}\n`);
}

/** Throws unless the last line is an `end` whose counts match. */
export async function* bytesToLines(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<SnapshotLine> {
  const decoder = new TextDecoder();
  let remainder = "";
  let keys = 0;
  let rows = 0;
  let ended = false;
  for await (const chunk of bytes) {
    const texts = (remainder + decoder.decode(chunk, { stream: true })).split("\n");
    remainder = texts.pop() ?? "";
    for (const text of texts) {
      const line: SnapshotLine = JSON.parse(text);
      if (line.line === "key") keys += 1;
      if (line.line === "row") rows += 1;
      ended = line.line === "end" && line.keys === keys && line.rows === rows;
      yield line;
    }
  }
  if (!ended || remainder !== "") throw new Error("the snapshot is not complete");
}

const intervalMs = 3_600_000;
const snapshotsMax = 48;

/** Takes a snapshot of the control plane every hour, and retains the newest 48. */
export function createSnapshotReconciler(deps: SnapshotDeps): ControlLoop {
  const { objects, clock, log } = deps;
  const reconciler: Reconciler = {
    name: "control-plane-snapshot",
    async reconcile(_key, signal) {
      const before = await snapshots(deps);
      const age = clock.now() - (before.at(-1)?.modifiedAt ?? 0);
      // After the clock was set back by hours, the newest snapshot is in the future, and another one is taken.
      if (Math.abs(age) < intervalMs) return again(intervalMs - Math.max(0, age), "the last snapshot is recent");
      const taken = await backUpControlPlane(deps, signal);
      log.info("control plane snapshot taken", { id: taken.id, sizeBytes: taken.sizeBytes });
      for (const { key } of before.slice(0, Math.max(0, before.length + 1 - snapshotsMax))) await objects.delete(key);
      return again(intervalMs, "the next hour");
    },
  };
  return { reconciler, keys: () => ["control-plane"], concurrency: 1, deadlineMs: 15 * 60_000 };
}

/** Every snapshot, oldest first. */
export async function snapshots({ objects }: Pick<SnapshotDeps, "objects">): Promise<ObjectFacts[]> {
  const found: ObjectFacts[] = [];
  for (let more = true; more; ) {
    const after = found.at(-1)?.key;
    const page = await objects.list(snapshotPrefix, { limit: 200, ...(after !== undefined && { after }) });
    found.push(...page.objects);
    more = page.more;
  }
  return found;
}
