import { create, equals, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { inBackground } from "@holdfast/common/background.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createTokenBuckets } from "@holdfast/common/token-bucket.ts";
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
const retryMs = 1_000;
/** Reports that are acted on; of more the newest one waits. An honest agent sends one in 15 s, and some while its engine starts. */
const acted = { burst: 60, perSecond: 1 };
/** Bytes for etcd. */
const stored = { burst: 1 << 20, perSecond: 2 << 10 };

/** Sizes move all the time; only a move by over a sixteenth, and over 16 MiB, is news. */
const newsworthyShare = 16n;
const newsworthyBytes = 16n << 20n;
/** How far a backup, a restore or an archive is moves all the time as well: the store has it now and then. */
const progressEveryMs = 30_000;

/** What an agent told of its machine's engine. */
export interface ObservedInstance {
  readonly instance: InstanceObservation;
  /** Milliseconds since 1970. */
  readonly observedAt: number;
  /** The start of the machine that it was observed in, as in SessionFacts. */
  readonly bootId: string;
}

/** The last material observation of each machine's instance, at every controller. */
export interface Observations {
  get(machineId: string): ObservedInstance | undefined;
  /** Takes what an agent reports here; writes to the store only when it is news. */
  report(machineId: string, instance: InstanceObservation, bootId: string): void;
  /** Forgets a machine that is gone. */
  forget(machineId: string): void;
  close(): void;
}

export interface ObservationsDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly onChange: (machineId: string) => void;
}

interface Stored {
  readonly observed: ObservedInstance;
  /** Sizes of the last one that was news. */
  readonly dataBytes: bigint;
  readonly freeBytes: bigint;
  /** When it was written to the store. */
  readonly savedAt: number;
}

interface StoredJson {
  readonly observedAt: number;
  /** Absent in what an older version wrote. */
  readonly bootId?: string;
  readonly instance: JsonValue;
}

export function createObservations({ store, clock, log, onChange }: ObservationsDeps): Observations {
  const latest = new Map<string, Stored>();
  const unsaved = new Set<string>();
  const saving = new Set<string>();
  /** The newest report of each machine that reports too often. */
  const late = new Map<string, { readonly instance: InstanceObservation; readonly bootId: string }>();
  const reports = createTokenBuckets(acted, clock.monotonicMs);
  const writes = createTokenBuckets(stored, clock.monotonicMs);
  let retry: NodeJS.Timeout | undefined;
  let closed = false;
  // After a reset the listing tells what is there; what it does not tell is gone.
  let unseen: Set<string> | undefined;

  const watch = store.watch(prefix, {
    reset() {
      unseen = new Set(latest.keys());
    },
    put({ key, value }) {
      const machineId = key.slice(prefix.length);
      unseen?.delete(machineId);
      const { observedAt, bootId = "", instance } = JSON.parse(value) as StoredJson;
      const known = latest.get(machineId);
      // What an agent said here a moment ago is newer than the echo of an earlier write.
      if (known !== undefined && known.observed.observedAt >= observedAt) return;
      const message = fromJson(InstanceObservationSchema, instance, { ignoreUnknownFields: true });
      latest.set(machineId, newsOf({ observedAt, bootId, instance: message }));
      onChange(machineId);
    },
    delete(key) {
      const machineId = key.slice(prefix.length);
      if (latest.delete(machineId)) onChange(machineId);
    },
    synced() {
      const gone = unseen;
      unseen = undefined;
      for (const machineId of gone ?? []) {
        if (!unsaved.has(machineId) && latest.delete(machineId)) onChange(machineId);
      }
    },
  });

  const saveSoon = (machineId: string) => inBackground(log, "observation", save(machineId));

  async function save(machineId: string): Promise<void> {
    if (saving.has(machineId)) return;
    saving.add(machineId);
    try {
      while (unsaved.delete(machineId)) {
        const stored = latest.get(machineId);
        if (stored === undefined) return;
        const { observedAt, bootId, instance } = stored.observed;
        const value = JSON.stringify({ observedAt, bootId, instance: toJson(InstanceObservationSchema, instance) });
        if (!writes.admits(machineId, Buffer.byteLength(value))) {
          unsaved.add(machineId);
          retry ??= setTimeout(catchUp, retryMs).unref();
          return;
        }
        await store.commit({ conditions: [], puts: [{ key: `${prefix}${machineId}`, value }], deletes: [] });
      }
    } catch (error) {
      log.warn("observation not stored", { machine: machineId, error: String(error) });
      unsaved.add(machineId);
      retry ??= setTimeout(catchUp, retryMs).unref();
    } finally {
      saving.delete(machineId);
    }
  }

  /** What could not be stored, and what came too often. */
  function catchUp(): void {
    retry = undefined;
    if (closed) return;
    for (const [machineId, { instance, bootId }] of late) take(machineId, instance, bootId);
    for (const machineId of unsaved) saveSoon(machineId);
  }

  function take(machineId: string, instance: InstanceObservation, bootId: string): void {
    if (!reports.admits(machineId, 1)) {
      late.set(machineId, { instance, bootId });
      retry ??= setTimeout(catchUp, retryMs).unref();
      return;
    }
    late.delete(machineId);
    const known = latest.get(machineId);
    const news = newsOf({ instance: boundedObservation(instance), observedAt: clock.now(), bootId });
    if (known !== undefined && isSame(known, news)) {
      const isDue = clock.now() - known.savedAt >= progressEveryMs && !equalsWhole(known, news);
      latest.set(machineId, { ...known, observed: news.observed, ...(isDue && { savedAt: clock.now() }) });
      if (isDue) {
        unsaved.add(machineId);
        saveSoon(machineId);
      }
      if (isAtWork(instance)) onChange(machineId);
      return;
    }
    latest.set(machineId, news);
    unsaved.add(machineId);
    saveSoon(machineId);
    onChange(machineId);
  }

  return {
    get: (machineId) => latest.get(machineId)?.observed,
    report: take,
    forget(machineId) {
      unsaved.delete(machineId);
      late.delete(machineId);
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

function newsOf(observed: ObservedInstance): Stored {
  const { dataBytes, freeBytes } = observed.instance;
  return { observed, dataBytes, freeBytes, savedAt: observed.observedAt };
}

function isSame(known: Stored, news: Stored): boolean {
  const { dataBytes, freeBytes } = news;
  return (
    known.observed.bootId === news.observed.bootId &&
    isNear(known.dataBytes, dataBytes) &&
    isNear(known.freeBytes, freeBytes) &&
    isNear(known.observed.instance.memoryDataBytes, news.observed.instance.memoryDataBytes) &&
    equals(
      InstanceObservationSchema,
      { ...withoutFigures(known.observed.instance), dataBytes, freeBytes },
      withoutFigures(news.observed.instance),
    )
  );
}

function equalsWhole(known: Stored, news: Stored): boolean {
  return equals(InstanceObservationSchema, known.observed.instance, news.observed.instance);
}

/** Does somebody wait for what moves? */
function isAtWork({ backup, restore }: InstanceObservation): boolean {
  return backup?.state === "running" || (restore !== undefined && restore.state !== "finished");
}

/** The same but for how far its backup, its restore and its archive are. */
function withoutFigures(instance: InstanceObservation): InstanceObservation {
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
  const moved = before > after ? before - after : after - before;
  return moved <= newsworthyBytes || moved * newsworthyShare <= before;
}
