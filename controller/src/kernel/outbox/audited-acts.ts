import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import { type AuditEntry, type NewAudit, type OutboxEntry, outboxKeyOf } from "../store/outbox-entry.ts";
import { root } from "../store/resource.ts";
import type { Store } from "../store/store.ts";
import type { OutboxGate } from "../store/unit-of-work.ts";

/**
 * Audits calls whose effect is not a change of the store, such as the deletion of a topic in its engine. An entry tells
 * the outcome, so it is written after the act. So that no act is without an entry, `act` stores a pending entry under
 * `pendingPrefix` before, with the outcome `outcome_unknown`. One transaction then replaces it by the entry of the
 * outcome in the outbox. After a crash in between, a sweep moves the pending entry to the outbox as it is.
 */
export interface AuditedActs {
  /**
   * Runs an act with an effect outside of the store. If it fails, its entry has the result `refused` and the error's
   * code, or `outcome_unknown` for an error that is not of the catalog. Throws STORE_UNAVAILABLE, with nothing done, if
   * etcd does not respond or too many entries wait for the history.
   */
  act<T>(entry: NewAudit, act: () => Promise<T>): Promise<T>;
  /**
   * Reads a secret, or something else without an effect: the entry is in the history before the caller gets the value,
   * and there is none if the read fails. Throws STORE_UNAVAILABLE.
   */
  read<T>(entry: NewAudit, read: () => T | Promise<T>): Promise<T>;
  /** True if the error failed an act whose entry is stored: the refusal of its call needs no second entry. */
  hasEntry(error: unknown): boolean;
  /** Moves the entries of acts that no controller ended to the outbox. */
  sweep(signal: AbortSignal): Promise<void>;
}

export interface AuditedActsDeps {
  readonly store: Pick<Store, "commit" | "list">;
  /** Resolves when the entries are durable in the history. */
  readonly history: { insert(entries: readonly OutboxEntry[], asOf: bigint): Promise<unknown> };
  readonly outbox: OutboxGate;
  readonly clock: Clock;
  readonly ids: () => string;
  readonly log: Log;
}

export const pendingPrefix = `${root}/pending-act/`;
/** Age at which an act has certainly ended, with its controller or without: every act has a shorter deadline. */
const pendingMaxMs = 5 * 60_000;
const pageSize = 100;

interface PendingAct {
  readonly key: string;
  readonly revision: bigint;
  readonly entry: AuditEntry;
}

export function createAuditedActs({ store, history, outbox, clock, ids, log }: AuditedActsDeps): AuditedActs {
  /** Errors of acts whose entries are stored. */
  const audited = new WeakSet<object>();

  const complete = (entry: NewAudit): AuditEntry => ({ ...entry, entry: "audit", id: ids(), occurredAt: clock.now() });

  async function begin(entry: NewAudit): Promise<PendingAct> {
    outbox.admit("user");
    const pending = complete(entry);
    const key = `${pendingPrefix}${pending.id}`;
    const value = JSON.stringify({ ...pending, ...refusedOf(entry, undefined) });
    const done = await store.commit({ conditions: [{ key, modRevision: 0n }], puts: [{ key, value }], deletes: [] });
    if (!done.committed) throw new Error("an id of an audit entry is in use");
    return { key, revision: done.revision, entry: pending };
  }

  /** Replaces the pending entry by that of the outcome. If it fails, the sweep moves the pending entry. */
  async function settle(pending: PendingAct, outcome: NewAudit): Promise<boolean> {
    try {
      if (!(await move(pending, { ...pending.entry, ...outcome })))
        // The sweep has moved the pending entry, so the outcome is another entry.
        await store.commit({ conditions: [], puts: [putOf(complete(outcome))], deletes: [] });
      return true;
    } catch (error) {
      log.warn("outcome of an audited call not stored", { action: outcome.action, error: String(error) });
      return false;
    }
  }

  /** False if another controller has moved it. */
  async function move({ key, revision }: Omit<PendingAct, "entry">, entry: AuditEntry, signal?: AbortSignal) {
    const conditions = [{ key, modRevision: revision }];
    const { committed } = await store.commit({ conditions, puts: [putOf(entry)], deletes: [key] }, signal);
    return committed;
  }

  return {
    async act(entry, act) {
      const pending = await begin(entry);
      let result: Awaited<ReturnType<typeof act>>;
      try {
        result = await act();
      } catch (error) {
        const isStored = await settle(pending, { ...entry, ...refusedOf(entry, error) });
        if (isStored && error instanceof Object) audited.add(error);
        throw error;
      }
      await settle(pending, entry);
      return result;
    },
    async read(entry, read) {
      const value = await read();
      await history.insert([complete(entry)], 0n);
      return value;
    },
    hasEntry: (error) => error instanceof Object && audited.has(error),
    async sweep(signal) {
      const before = clock.now() - pendingMaxMs;
      let after: string | undefined;
      for (let more = true; more; ) {
        const page = await store.list(
          pendingPrefix,
          { limit: pageSize, ...(after !== undefined && { after }) },
          signal,
        );
        for (const { key, value, modRevision: revision } of page.values) {
          const entry: AuditEntry = JSON.parse(value);
          if (entry.occurredAt < before) await move({ key, revision }, entry, signal);
        }
        after = page.values.at(-1)?.key;
        more = page.more && after !== undefined;
      }
    },
  };
}

function putOf(entry: AuditEntry) {
  return { key: outboxKeyOf(entry.id), value: JSON.stringify(entry) };
}

/** The fields of an entry of a refused act: its action names the error, as refusals of other calls do. */
function refusedOf({ action }: NewAudit, error: unknown): Pick<NewAudit, "action" | "result"> {
  const code = error instanceof HoldfastError ? error.code : "outcome_unknown";
  return { action: `${action} ${code}`, result: "refused" };
}
