import { create, equals, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { inBackground } from "@holdfast/common/background.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createTokenBuckets } from "@holdfast/common/concurrency/token-buckets.ts";
import {
  ArchiveObservationSchema,
  BackupObservationSchema,
  RestoreObservationSchema,
} from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { type InstanceObservation, InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { root } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import { boundedObservation } from "./bounded-frames.ts";

const prefix = `${root}/observation/`;
const retryDelayMs = 1_000;
/**
 * Rate of processed reports of one machine; of excess reports the newest one waits. A correct agent sends one every 15
 * s, and more while its engine starts.
 */
const reportRate = { burst: 60, perSecond: 1 };
/** Rate of bytes written to etcd for one machine. */
const writeRate = { burst: 1 << 20, perSecond: 2 << 10 };

/** Share below which a change of size is immaterial: only a change above a sixteenth and above 16 MiB is material. */
const materialShare = 16n;
const materialBytes = 16n << 20n;
/** Interval at which the changing progress of backups, restores and archives is stored. */
const progressIntervalMs = 30_000;

/** An agent's report on its machine's engine. */
export interface ObservedInstance {
  readonly instance: InstanceObservation;
  /** Milliseconds since 1970. */
  readonly observedAt: number;
  /** Boot id of the machine at the time of the observation, as in SessionFacts. */
  readonly bootId: string;
}

/** The last material observation of each machine's instance, shared by all controllers through the store. */
export interface Observations {
  get(machineId: string): ObservedInstance | undefined;
  /** Processes a report of an agent connected here. Only material changes are stored. */
  report(machineId: string, instance: InstanceObservation, bootId: string): void;
  /** Deletes the observation of a deleted machine. */
  remove(machineId: string): void;
  close(): void;
}

export interface ObservationsDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly onChange: (machineId: string) => void;
}

interface StoredObservation {
  readonly observed: ObservedInstance;
  /** Data size of the last material observation. */
  readonly dataBytes: bigint;
  /** Free space of the last material observation. */
  readonly freeBytes: bigint;
  /** Time of the last write to the store, in milliseconds since 1970. */
  readonly savedAt: number;
}

interface ObservationJson {
  readonly observedAt: number;
  readonly bootId: string;
  readonly instance: JsonValue;
}

export function createObservations({ store, clock, log, onChange }: ObservationsDeps): Observations {
  const latest = new Map<string, StoredObservation>();
  const unsaved = new Set<string>();
  const saving = new Set<string>();
  /** Newest report of each machine that exceeds its rate. */
  const deferred = new Map<string, { readonly instance: InstanceObservation; readonly bootId: string }>();
  const reports = createTokenBuckets(reportRate, clock.monotonicMs);
  const writes = createTokenBuckets(writeRate, clock.monotonicMs);
  let retry: NodeJS.Timeout | undefined;
  let closed = false;
  // After a watch reset the store lists all keys; keys missing from the list were deleted.
  let unseen: Set<string> | undefined;

  const watch = store.watch(prefix, {
    reset() {
      unseen = new Set(latest.keys());
    },
    put({ key, value }) {
      const machineId = key.slice(prefix.length);
      unseen?.delete(machineId);
      const { observedAt, bootId, instance } = JSON.parse(value) as ObservationJson;
      const previous = latest.get(machineId);
      // A report received here may be newer than the watch event of an earlier write.
      if (previous !== undefined && previous.observed.observedAt >= observedAt) return;
      const message = fromJson(InstanceObservationSchema, instance, { ignoreUnknownFields: true });
      latest.set(machineId, storedOf({ observedAt, bootId, instance: message }));
      onChange(machineId);
    },
    delete(key) {
      const machineId = key.slice(prefix.length);
      if (latest.delete(machineId)) onChange(machineId);
    },
    synced() {
      const deleted = unseen;
      unseen = undefined;
      for (const machineId of deleted ?? []) {
        if (!unsaved.has(machineId) && latest.delete(machineId)) onChange(machineId);
      }
    },
  });

  const startSave = (machineId: string) => inBackground(log, "observation", save(machineId));

  async function save(machineId: string): Promise<void> {
    if (saving.has(machineId)) return;
    saving.add(machineId);
    try {
      while (unsaved.delete(machineId)) {
        const unwritten = latest.get(machineId);
        if (unwritten === undefined) return;
        const { observedAt, bootId, instance } = unwritten.observed;
        const value = JSON.stringify({ observedAt, bootId, instance: toJson(InstanceObservationSchema, instance) });
        if (!writes.admits(machineId, Buffer.byteLength(value))) {
          unsaved.add(machineId);
          retry ??= setTimeout(catchUp, retryDelayMs).unref();
          return;
        }
        await store.commit({ conditions: [], puts: [{ key: `${prefix}${machineId}`, value }], deletes: [] });
      }
    } catch (error) {
      log.warn("observation not stored", { machine: machineId, error: String(error) });
      unsaved.add(machineId);
      retry ??= setTimeout(catchUp, retryDelayMs).unref();
    } finally {
      saving.delete(machineId);
    }
  }

  /** Processes deferred reports and retries failed writes. */
  function catchUp(): void {
    retry = undefined;
    if (closed) return;
    for (const [machineId, { instance, bootId }] of deferred) take(machineId, instance, bootId);
    for (const machineId of unsaved) startSave(machineId);
  }

  function take(machineId: string, instance: InstanceObservation, bootId: string): void {
    if (!reports.admits(machineId, 1)) {
      deferred.set(machineId, { instance, bootId });
      retry ??= setTimeout(catchUp, retryDelayMs).unref();
      return;
    }
    deferred.delete(machineId);
    const previous = latest.get(machineId);
    const next = storedOf({ instance: boundedObservation(instance), observedAt: clock.now(), bootId });
    if (previous !== undefined && isImmaterialChange(previous, next)) {
      const isDue = clock.now() - previous.savedAt >= progressIntervalMs && !isIdentical(previous, next);
      latest.set(machineId, { ...previous, observed: next.observed, ...(isDue && { savedAt: clock.now() }) });
      if (isDue) {
        unsaved.add(machineId);
        startSave(machineId);
      }
      if (isBusy(instance)) onChange(machineId);
      return;
    }
    latest.set(machineId, next);
    unsaved.add(machineId);
    startSave(machineId);
    onChange(machineId);
  }

  return {
    get: (machineId) => latest.get(machineId)?.observed,
    report: take,
    remove(machineId) {
      unsaved.delete(machineId);
      deferred.delete(machineId);
      latest.delete(machineId);
      store
        .commit({ conditions: [], puts: [], deletes: [`${prefix}${machineId}`] })
        .catch((error: unknown) => log.warn("observation not removed", { machine: machineId, error: String(error) }));
    },
    close() {
      closed = true;
      clearTimeout(retry);
      watch.close();
    },
  };
}

function storedOf(observed: ObservedInstance): StoredObservation {
  const { dataBytes, freeBytes } = observed.instance;
  return { observed, dataBytes, freeBytes, savedAt: observed.observedAt };
}

function isImmaterialChange(previous: StoredObservation, next: StoredObservation): boolean {
  const { dataBytes, freeBytes } = next;
  return (
    previous.observed.bootId === next.observed.bootId &&
    isNear(previous.dataBytes, dataBytes) &&
    isNear(previous.freeBytes, freeBytes) &&
    isNear(previous.observed.instance.memoryDataBytes, next.observed.instance.memoryDataBytes) &&
    equals(
      InstanceObservationSchema,
      { ...withoutProgress(previous.observed.instance), dataBytes, freeBytes },
      withoutProgress(next.observed.instance),
    )
  );
}

function isIdentical(previous: StoredObservation, next: StoredObservation): boolean {
  return equals(InstanceObservationSchema, previous.observed.instance, next.observed.instance);
}

/** True while a backup or restore runs, whose progress reconcilers wait for. */
function isBusy({ backup, restore }: InstanceObservation): boolean {
  return backup?.state === "running" || (restore !== undefined && restore.state !== "finished");
}

/** The observation without the progress of its backup, restore and archive. */
function withoutProgress(instance: InstanceObservation): InstanceObservation {
  const { backup, archive, restore } = instance;
  const without: InstanceObservation = { ...instance, memoryDataBytes: 0n };
  if (backup !== undefined)
    without.backup = create(BackupObservationSchema, pick(backup, ["backupId", "attempt", "state"]));
  if (archive !== undefined)
    without.archive = create(
      ArchiveObservationSchema,
      pick(archive, ["archiveId", "state", "reason", "term", "branch"]),
    );
  if (restore !== undefined)
    without.restore = create(RestoreObservationSchema, pick(restore, ["restoreId", "state", "reason"]));
  return without;
}

function pick<T, K extends keyof T>(from: T, names: readonly K[]): Pick<T, K> {
  return Object.fromEntries(names.map((name) => [name, from[name]])) as Pick<T, K>;
}

function isNear(before: bigint, after: bigint): boolean {
  const difference = before > after ? before - after : after - before;
  return difference <= materialBytes || difference * materialShare <= before;
}
