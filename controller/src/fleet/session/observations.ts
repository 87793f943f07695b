import { equals, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { type InstanceObservation, InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { root } from "../../store/resource.ts";
import type { Store } from "../../store/store.ts";

const prefix = `${root}/observation/`;
const retryMs = 1_000;

/** Sizes move all the time; only a move by over a sixteenth, and over 16 MiB, is news. */
const newsworthyShare = 16n;
const newsworthyBytes = 16n << 20n;

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

  async function save(machineId: string): Promise<void> {
    if (saving.has(machineId)) return;
    saving.add(machineId);
    try {
      while (unsaved.delete(machineId)) {
        const stored = latest.get(machineId);
        if (stored === undefined) return;
        const { observedAt, bootId, instance } = stored.observed;
        const value = JSON.stringify({ observedAt, bootId, instance: toJson(InstanceObservationSchema, instance) });
        await store.commit({ conditions: [], puts: [{ key: `${prefix}${machineId}`, value }], deletes: [] });
      }
    } catch (error) {
      log.warn("observation not stored", { machine: machineId, error: String(error) });
      unsaved.add(machineId);
      retry ??= setTimeout(saveAll, retryMs).unref();
    } finally {
      saving.delete(machineId);
    }
  }

  function saveAll(): void {
    retry = undefined;
    if (!closed) for (const machineId of unsaved) void save(machineId);
  }

  return {
    get: (machineId) => latest.get(machineId)?.observed,
    report(machineId, instance, bootId) {
      const known = latest.get(machineId);
      const news = newsOf({ instance, observedAt: clock.now(), bootId });
      if (known !== undefined && isSame(known, news)) {
        latest.set(machineId, { ...known, observed: news.observed });
        return;
      }
      latest.set(machineId, news);
      unsaved.add(machineId);
      void save(machineId);
      onChange(machineId);
    },
    forget(machineId) {
      unsaved.delete(machineId);
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
  return { observed, dataBytes, freeBytes };
}

function isSame(known: Stored, news: Stored): boolean {
  const { dataBytes, freeBytes } = news;
  return (
    known.observed.bootId === news.observed.bootId &&
    isNear(known.dataBytes, dataBytes) &&
    isNear(known.freeBytes, freeBytes) &&
    equals(InstanceObservationSchema, { ...known.observed.instance, dataBytes, freeBytes }, news.observed.instance)
  );
}

function isNear(before: bigint, after: bigint): boolean {
  const moved = before > after ? before - after : after - before;
  return moved <= newsworthyBytes || moved * newsworthyShare <= before;
}
