import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { History } from "../history/history.ts";
import { backOffMs } from "../runtime/back-off.ts";
import type { Ownership } from "../runtime/ownership.ts";
import type { Store } from "../store/store.ts";
import type { NewAudit, OutboxGate } from "../store/unit-of-work.ts";
import { type OutboxEntry, outboxPrefix } from "./outbox-entry.ts";
import { createWaitingEntries } from "./waiting-entries.ts";

/** Takes events and audit entries from the store, where their change put them, to the history. */
export interface Outbox extends OutboxGate {
  /** Entries in the store that the history may not have yet, as this controller sees it. */
  readonly waiting: number;
  /** Audits what must not happen unseen, such as a reveal: it is in the history when this resolves. Throws STORE_UNAVAILABLE. */
  auditNow(entry: NewAudit): Promise<void>;
  /** Audits what changed nothing, such as a refusal, in a moment. It never throws and never waits. */
  auditSoon(entry: NewAudit): void;
  /** Stops moving; what is left waits for another controller. */
  stop(): Promise<void>;
}

interface Deps {
  readonly store: Store;
  readonly history: Pick<History, "insert">;
  readonly ownership: Ownership;
  readonly clock: Clock;
  readonly ids: () => string;
  readonly random: () => number;
  readonly log: Log;
}

/** What users do waits here for the history; what the platform does to keep services alive has as much room again. */
const limits = { user: 20_000, platform: 40_000 };
const batchSize = 100;
/** A moment to gather what comes together, so that it is one transaction to remove it. */
const gatherMs = 25;
const maxSoon = 1_000;
/** One controller moves, so that entries arrive in the order of their changes. */
const ownershipKey = "outbox";

/** It begins to move by itself. A crash between insert and delete makes the next one insert again, which changes nothing. */
export function createOutbox({ store, history, ownership, clock, ids, random, log }: Deps): Outbox {
  const stopped = new AbortController();
  const entries = createWaitingEntries();
  let soon: OutboxEntry[] = [];
  let dropped = 0;
  let moving: Promise<void> | undefined;

  const watch = store.watch(outboxPrefix, {
    reset: entries.clear,
    put: entries.add,
    delete: entries.remove,
    synced: wake,
  });
  const gaining = ownership.subscribe(wake);

  function wake(): void {
    if (stopped.signal.aborted || moving !== undefined) return;
    if (soon.length === 0 && (entries.size === 0 || !ownership.owns(ownershipKey))) return;
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
        await delay(failures === 0 ? gatherMs : backOffMs(failures, random, { maxMs: 10_000 }), undefined, {
          signal: stopped.signal,
        });
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
    if (soon.length === 0) return;
    const batch = soon.slice(0, maxSoon);
    await history.insert(batch);
    soon = soon.slice(batch.length);
    if (dropped > 0) log.error("audit entries of refused calls were dropped", { dropped });
    dropped = 0;
  }

  /** False when there is nothing to move, or it is not ours to move. */
  async function moveBatch(): Promise<boolean> {
    const batch = entries.oldest(batchSize);
    if (batch.length === 0) return soon.length > 0;
    const right = ownership.begin(ownershipKey);
    if (right === undefined) return soon.length > 0;
    try {
      await history.insert(batch.map(({ value }): OutboxEntry => JSON.parse(value)));
      const deletes = batch.map(({ key }) => key);
      await store.commit({ conditions: [], puts: [], deletes }, stopped.signal);
      for (const key of deletes) entries.remove(key);
      return true;
    } finally {
      right.end();
    }
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
    auditNow: (entry) => history.insert([complete(entry)]),
    auditSoon(entry) {
      // The oldest are dropped: a flood of refused calls must not push out what comes after it.
      if (soon.length >= maxSoon) {
        soon.shift();
        dropped += 1;
      }
      soon.push(complete(entry));
      wake();
    },
    async stop() {
      watch.close();
      gaining.close();
      stopped.abort(new Error("the controller stops"));
      await moving;
      await insertSoon().catch((error) => log.error("audit entries of refused calls were lost", { error }));
    },
  };
}
