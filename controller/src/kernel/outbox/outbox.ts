import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import { backOffMs } from "@holdfast/common/back-off.ts";
import { createRefusedEntries } from "./refused-entries.ts";
import type { Ownership } from "../runtime/ownership.ts";
import type { Store } from "../store/store.ts";
import type { OutboxGate } from "../store/unit-of-work.ts";
import { type NewAudit, type OutboxEntry, outboxKeyOf, outboxPrefix } from "../store/outbox-entry.ts";
import { createWaitingEntries } from "./waiting-entries.ts";

/**
 * The transactional outbox. A unit of work writes its events and audit entries into etcd; the owner of the key "outbox"
 * moves them to the history in the order of their revisions and then deletes them. Audit entries of refused calls are
 * not part of a transaction: they are inserted directly, and saved in etcd only while the history is unavailable.
 */
export interface Outbox extends OutboxGate {
  /** Number of entries in the store that the history may not have yet. */
  readonly waiting: number;
  /** Audits calls that changed nothing, such as a refusal, asynchronously. It never throws and never blocks. */
  auditSoon(entry: NewAudit): void;
  /** Stops moving entries; another controller moves the remaining ones. */
  stop(): Promise<void>;
}

interface Deps {
  readonly store: Store;
  /** Resolves when the entries are durable in the history. `asOf` is the revision of the newest change among them. */
  readonly history: { insert(entries: readonly OutboxEntry[], asOf: bigint): Promise<unknown> };
  readonly ownership: Ownership;
  readonly clock: Clock;
  readonly ids: () => string;
  readonly random: () => number;
  readonly log: Log;
}

/**
 * Maximum number of waiting entries: above `user` changes by users are refused, above `platform` also changes by the
 * platform itself.
 */
const limits = { user: 20_000, platform: 40_000 };
const batchSize = 100;
/** Delay from the insert into the history to the deletion from etcd, so that one transaction deletes many entries. */
const removalDelayMs = 50;
const refusedBatchSize = 500;
/** Refusals that are not in the history after this time are saved in etcd, so that a kill loses one second at most. */
const saveAfterMs = 250;
const saveIntervalMs = 250;
/** Key whose owner moves the entries: a single controller, so that entries arrive in the order of their changes. */
const ownershipKey = "outbox";

/**
 * Creates the outbox, which starts to move entries immediately. After a crash between insert and delete, the next run
 * inserts the entry again, which changes nothing.
 */
export function createOutbox({ store, history, ownership, clock, ids, random, log }: Deps): Outbox {
  const stopped = new AbortController();
  const entries = createWaitingEntries();
  /** Keys of entries that are in the history and still in the store. */
  const inserted = new Set<string>();
  let removing: Promise<void> | undefined;
  const refused = createRefusedEntries(clock, ids);
  let moving: Promise<void> | undefined;
  let saving: Promise<void> | undefined;
  const saveTimer = setInterval(() => {
    saving ??= saveRefused().finally(() => {
      saving = undefined;
    });
  }, saveIntervalMs).unref();

  const watch = store.watch(outboxPrefix, {
    reset: entries.clear,
    put: entries.add,
    delete: entries.remove,
    synced: wake,
  });
  const ownershipWatch = ownership.subscribe(wake);

  function wake(): void {
    if (stopped.signal.aborted || moving !== undefined) return;
    if (refused.size === 0 && (entries.size === 0 || !ownership.owns(ownershipKey))) return;
    moving = move().finally(() => {
      moving = undefined;
      wake();
    });
  }

  /** Moves entries until none remain. */
  async function move(): Promise<void> {
    let failures = 0;
    while (!stopped.signal.aborted) {
      try {
        if (failures > 0)
          await delay(backOffMs(failures, random, { maxMs: 10_000 }), undefined, { signal: stopped.signal });
        await insertRefused();
        if (!(await moveBatch())) return;
        if (failures > 0) log.info("outbox resumed", { waiting: entries.size });
        failures = 0;
      } catch (error) {
        if (stopped.signal.aborted) return;
        failures += 1;
        if (failures === 1) log.warn("outbox blocked", { waiting: entries.size, error: String(error) });
      }
    }
  }

  async function insertRefused(): Promise<void> {
    const batch = refused.oldest(refusedBatchSize);
    if (batch.length === 0) return;
    await history.insert(batch, 0n);
    refused.remove(batch);
  }

  /**
   * Saves refusals in etcd while the history is unavailable. The controller that owns the outbox moves them from there.
   */
  async function saveRefused(): Promise<void> {
    const batch = refused.unsaved(saveAfterMs, batchSize);
    const deletes = refused.takeEvicted().map(outboxKeyOf);
    if (batch.length + deletes.length === 0) return;
    const puts = batch.map((entry) => ({ key: outboxKeyOf(entry.id), value: JSON.stringify(entry) }));
    try {
      await store.commit({ conditions: [], puts, deletes });
      refused.markSaved(batch);
    } catch (error) {
      log.debug("refused calls not saved", { error: String(error) });
    }
  }

  /** Moves one batch. False if nothing remains to be moved, or another controller owns the outbox. */
  async function moveBatch(): Promise<boolean> {
    const batch = entries.oldest(batchSize);
    if (batch.length === 0) return refused.size > 0;
    const lease = ownership.begin(ownershipKey);
    if (lease === undefined) return refused.size > 0;
    try {
      const newest = batch.at(-1)?.createRevision ?? 0n;
      await history.insert(
        batch.map(({ value }): OutboxEntry => JSON.parse(value)),
        newest,
      );
      for (const { key } of batch) {
        entries.remove(key);
        inserted.add(key);
      }
      removing ??= removeInserted();
      return true;
    } finally {
      lease.end();
    }
  }

  /**
   * Deletes entries from the store that are in the history. An entry whose deletion fails is inserted again later,
   * which changes nothing.
   */
  async function removeInserted(): Promise<void> {
    for (let failures = 0; inserted.size > 0; ) {
      const waitMs = failures === 0 ? removalDelayMs : backOffMs(failures, random, { maxMs: 10_000 });
      await delay(waitMs, undefined, { signal: stopped.signal }).catch(() => undefined);
      const deletes = [...inserted].slice(0, batchSize);
      try {
        await store.commit({ conditions: [], puts: [], deletes });
        for (const key of deletes) inserted.delete(key);
        failures = 0;
      } catch (error) {
        if (stopped.signal.aborted) return;
        failures += 1;
        if (failures === 1) log.warn("outbox not cleared", { waiting: inserted.size, error: String(error) });
      }
    }
    // No await since the last check of `inserted`, so a later entry starts a new removal.
    removing = undefined;
  }

  return {
    get waiting() {
      return entries.size;
    },
    admit(cause) {
      if (entries.size < limits[cause]) return;
      throw new HoldfastError(
        "STORE_UNAVAILABLE",
        "The history database is unavailable, and too many events wait for it. Try again later.",
        {
          retryAfterS: 5,
        },
      );
    },
    auditSoon(entry) {
      if (refused.add(entry)) wake();
    },
    async stop() {
      clearInterval(saveTimer);
      watch.close();
      ownershipWatch.close();
      stopped.abort(new Error("the controller stops"));
      await moving;
      await removing;
      await saving;
      await insertRefused().catch((error) => log.error("audit entries of refused calls were lost", { error }));
    },
  };
}
