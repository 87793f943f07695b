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

/** Takes events and audit entries from the store, where their change put them, to the history. */
export interface Outbox extends OutboxGate {
  /** Entries in the store that the history may not have yet, as this controller sees it. */
  readonly waiting: number;
  /**
   * Audits actions that must never go unrecorded, such as a reveal: the entry is in the history when this resolves.
   * Throws STORE_UNAVAILABLE.
   */
  auditNow(entry: NewAudit): Promise<void>;
  /** Audits calls that changed nothing, such as a refusal, in a moment. It never throws and never waits. */
  auditSoon(entry: NewAudit): void;
  /** Stops moving; another controller moves the remaining entries. */
  stop(): Promise<void>;
}

interface Deps {
  readonly store: Store;
  /** Resolves when the entries are in the history for good. `asOf` is the revision of the newest change among them. */
  readonly history: { insert(entries: readonly OutboxEntry[], asOf: bigint): Promise<unknown> };
  readonly ownership: Ownership;
  readonly clock: Clock;
  readonly ids: () => string;
  readonly random: () => number;
  readonly log: Log;
}

/**
 * Most waiting entries: beyond `user` changes of users are refused, beyond `platform` also those of the platform
 * itself.
 */
const limits = { user: 20_000, platform: 40_000 };
const batchSize = 100;
/** Entries in the history leave the store a moment later, so that one transaction removes many. */
const removeMs = 50;
const soonAtOnce = 500;
/**
 * Refusals that the history has not taken by then go to the store, so that a kill loses those of one second at most.
 */
const keepAfterMs = 250;
const keepEveryMs = 250;
/** One controller moves, so that entries arrive in the order of their changes. */
const ownershipKey = "outbox";

/**
 * It begins to move by itself. A crash between insert and delete makes the next one insert again, which changes
 * nothing.
 */
export function createOutbox({ store, history, ownership, clock, ids, random, log }: Deps): Outbox {
  const stopped = new AbortController();
  const entries = createWaitingEntries();
  /** Keys of entries that the history has and the store still has too. */
  const done = new Set<string>();
  let removing: Promise<void> | undefined;
  const soon = createRefusedEntries(clock, ids);
  let moving: Promise<void> | undefined;
  let keeping: Promise<void> | undefined;
  const keepTimer = setInterval(() => {
    keeping ??= keepSoon().finally(() => {
      keeping = undefined;
    });
  }, keepEveryMs).unref();

  const watch = store.watch(outboxPrefix, {
    reset: entries.clear,
    put: entries.add,
    delete: entries.remove,
    synced: wake,
  });
  const gaining = ownership.subscribe(wake);

  function wake(): void {
    if (stopped.signal.aborted || moving !== undefined) return;
    if (soon.size === 0 && (entries.size === 0 || !ownership.owns(ownershipKey))) return;
    moving = move().finally(() => {
      moving = undefined;
      wake();
    });
  }

  /** Moves until nothing is left. */
  async function move(): Promise<void> {
    let failures = 0;
    while (!stopped.signal.aborted) {
      try {
        if (failures > 0)
          await delay(backOffMs(failures, random, { maxMs: 10_000 }), undefined, { signal: stopped.signal });
        await insertSoon();
        if (!(await moveBatch())) return;
        if (failures > 0) log.info("outbox moves again", { waiting: entries.size });
        failures = 0;
      } catch (error) {
        if (stopped.signal.aborted) return;
        failures += 1;
        if (failures === 1) log.warn("outbox waits", { waiting: entries.size, error: String(error) });
      }
    }
  }

  async function insertSoon(): Promise<void> {
    const batch = soon.oldest(soonAtOnce);
    if (batch.length === 0) return;
    await history.insert(batch, 0n);
    soon.remove(batch);
  }

  /**
   * Saves refusals in the store while the history is away. From there the controller that moves the outbox moves them
   * too.
   */
  async function keepSoon(): Promise<void> {
    const batch = soon.unkept(keepAfterMs, batchSize);
    const deletes = soon.takePushedOut().map(outboxKeyOf);
    if (batch.length + deletes.length === 0) return;
    const puts = batch.map((entry) => ({ key: outboxKeyOf(entry.id), value: JSON.stringify(entry) }));
    try {
      await store.commit({ conditions: [], puts, deletes });
      soon.kept(batch);
    } catch (error) {
      log.debug("refused calls not kept", { error: String(error) });
    }
  }

  /** False when there is nothing to move, or it is not ours to move. */
  async function moveBatch(): Promise<boolean> {
    const batch = entries.oldest(batchSize);
    if (batch.length === 0) return soon.size > 0;
    const right = ownership.begin(ownershipKey);
    if (right === undefined) return soon.size > 0;
    try {
      const newest = batch.at(-1)?.createRevision ?? 0n;
      await history.insert(
        batch.map(({ value }): OutboxEntry => JSON.parse(value)),
        newest,
      );
      for (const { key } of batch) {
        entries.remove(key);
        done.add(key);
      }
      removing ??= removeDone();
      return true;
    } finally {
      right.end();
    }
  }

  /**
   * Removes entries from the store that the history has. An entry whose removal fails is moved again later, which
   * changes nothing.
   */
  async function removeDone(): Promise<void> {
    for (let failures = 0; done.size > 0; ) {
      const waitMs = failures === 0 ? removeMs : backOffMs(failures, random, { maxMs: 10_000 });
      await delay(waitMs, undefined, { signal: stopped.signal }).catch(() => undefined);
      const deletes = [...done].slice(0, batchSize);
      try {
        await store.commit({ conditions: [], puts: [], deletes });
        for (const key of deletes) done.delete(key);
        failures = 0;
      } catch (error) {
        if (stopped.signal.aborted) return;
        failures += 1;
        if (failures === 1) log.warn("outbox not cleared", { waiting: done.size, error: String(error) });
      }
    }
    // In the same turn as the last look at `done`: a later entry begins a new removal.
    removing = undefined;
  }

  function complete(entry: NewAudit): OutboxEntry {
    return { ...entry, entry: "audit", id: ids(), occurredAt: clock.now() };
  }

  return {
    get waiting() {
      return entries.size;
    },
    admit(cause) {
      if (entries.size < limits[cause]) return;
      throw new HoldfastError("STORE_UNAVAILABLE", "The history database is away, and too many events wait for it.", {
        retryAfterS: 5,
      });
    },
    auditNow: async (entry) => void (await history.insert([complete(entry)], 0n)),
    auditSoon(entry) {
      if (soon.add(entry)) wake();
    },
    async stop() {
      clearInterval(keepTimer);
      watch.close();
      gaining.close();
      stopped.abort(new Error("the controller stops"));
      await moving;
      await removing;
      await keeping;
      await insertSoon().catch((error) => log.error("audit entries of refused calls were lost", { error }));
    },
  };
}
