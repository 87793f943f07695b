import assert from "node:assert";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { AnyMessage, Call } from "@holdfast/common/call.ts";
import type { Sealer } from "../secrets/sealer.ts";
import { storedResponseKey, storedResponseOf } from "./stored-responses.ts";
import {
  type AuditEntry,
  type EventEntry,
  type NewAudit,
  type NewEvent,
  outboxKeyOf,
  outboxPrefix,
} from "./outbox-entry.ts";
import type { Kind } from "./kind.ts";
import { keyOf, type KindName, nameKeyOf, type Resource, type Stored } from "./resource.ts";
import type { Store } from "./store.ts";
import type { Writer, WriteRateLimit } from "./write-rate-limit.ts";

export interface UnitOfWorkDeps {
  readonly outbox: OutboxGate;
  /** Absent: written bytes are not limited. */
  readonly writeRateLimit?: WriteRateLimit;
  readonly sealer: Sealer;
  readonly clock: Clock;
  /** Ids of events and audit entries: UUIDv7, ascending. */
  readonly ids: () => string;
}

/** Bounds the events and audit entries that wait for the history. */
export interface OutboxGate {
  /** Throws STORE_UNAVAILABLE if no more entries of this cause may wait. */
  admit(cause: "user" | "platform"): void;
}

/** Changes of objects, with their events, that are committed together. */
export interface Changes {
  create<R extends Resource<unknown, unknown>>(kind: Kind<R>, object: R): void;
  /** Replaces the object if it still has the revision that was read. */
  update<R extends Resource<unknown, unknown>>(kind: Kind<R>, before: Stored<R>, after: R): void;
  remove<R extends Resource<unknown, unknown>>(kind: Kind<R>, before: Stored<R>): void;
  /** Compare-and-set of a key that belongs to no kind, such as the authority's record; revision 0n: an absent key. */
  replace(key: string, modRevision: bigint, value: string): void;
  /**
   * Claims a name in an organization; the commit throws NAME_TAKEN if another object has it. `organizationId` is empty
   * for kinds with `globalNames`, and only for these: an error across organizations would reveal other tenants' names.
   * `taken` replaces the error NAME_TAKEN.
   */
  claimName(kind: KindName, organizationId: string, name: string, id: string, taken?: HoldfastError): void;
  releaseName(kind: KindName, organizationId: string, name: string): void;
  event(event: NewEvent): void;
  /**
   * Adds a condition: the commit throws Conflict unless the key still has this revision, such as the claim of a shard.
   */
  onlyWhile(condition: { readonly key: string; readonly modRevision: bigint }): void;
}

/**
 * One transaction: changes of objects together with their events, the audit entry and the stored response of the call.
 * All of it is committed, or nothing. A call changes objects by `mutate` (access/mutate.ts).
 */
export interface UnitOfWork extends Changes {
  audit(entry: NewAudit): void;
  /** Stores the response under the call's Idempotency-Key, sealed when it contains a secret. No-op without a key. */
  storeResponse(call: Call, response: AnyMessage): void;
  /** Replaces the response that an earlier unit of work of the call stored; undefined deletes it. */
  replaceResponse(call: Call, response: AnyMessage | undefined): void;
  /**
   * Throws Conflict if an object changed since it was read: read it again and repeat the change. Throws NAME_TAKEN,
   * AlreadyResponded, RATE_LIMITED beyond the bytes that the caller may write in an hour, and STORE_UNAVAILABLE if etcd
   * does not respond or too many entries wait for the history.
   */
  commit(signal?: AbortSignal): Promise<bigint>;
}

/**
 * Another call with the same Idempotency-Key committed first, on another controller; its response is the response of
 * this call as well. Do not repeat the work: the gateway finds the stored response.
 */
export class AlreadyResponded extends HoldfastError {
  override readonly name = "AlreadyResponded";

  constructor() {
    super(
      "OPERATION_IN_PROGRESS",
      "Another request with this Idempotency-Key completed first. Repeat the request to get its response.",
    );
  }
}

/** Another writer changed an object since it was read. */
export class Conflict extends Error {
  override readonly name = "Conflict";
}

export function createUnitOfWork(
  store: Store,
  { outbox, writeRateLimit, sealer, clock, ids }: UnitOfWorkDeps,
): UnitOfWork {
  const conditions: { key: string; modRevision: bigint }[] = [];
  const puts: { key: string; value: string }[] = [];
  const deletes: string[] = [];
  const claims: { key: string; taken: HoldfastError }[] = [];
  let responseKey: string | undefined;
  let writer: Writer | undefined;

  function record(entry: Omit<EventEntry, "id" | "occurredAt"> | Omit<AuditEntry, "id" | "occurredAt">): void {
    const id = ids();
    puts.push({ key: outboxKeyOf(id), value: JSON.stringify({ ...entry, id, occurredAt: clock.now() }) });
  }

  /** A unit that only deletes frees space, so the limit on written bytes does not apply to it. */
  function chargeBytes(): (() => void) | undefined {
    if (writer === undefined || puts.every(({ key }) => key.startsWith(outboxPrefix))) return undefined;
    return writeRateLimit?.take(
      writer,
      puts.reduce((sum, { key, value }) => sum + key.length + value.length, 0),
    );
  }

  /** The error of a failed condition, by the current values in the store. */
  async function conflictOf(signal: AbortSignal | undefined): Promise<Error> {
    if (responseKey !== undefined && (await store.get(responseKey, signal)) !== undefined)
      return new AlreadyResponded();
    for (const { key, taken } of claims) if ((await store.get(key, signal)) !== undefined) return taken;
    return new Conflict();
  }

  return {
    create(kind, object) {
      const key = keyOf(kind, object.metadata.id);
      conditions.push({ key, modRevision: 0n });
      puts.push({ key, value: kind.format(object) });
    },
    update(kind, { object, modRevision }, after) {
      const key = keyOf(kind, object.metadata.id);
      assert(after.metadata.id === object.metadata.id, "an object keeps its id");
      conditions.push({ key, modRevision });
      puts.push({ key, value: kind.format(after) });
    },
    remove(kind, { object, modRevision }) {
      const key = keyOf(kind, object.metadata.id);
      conditions.push({ key, modRevision });
      deletes.push(key);
    },
    replace(key, modRevision, value) {
      conditions.push({ key, modRevision });
      puts.push({ key, value });
    },
    claimName(kind, organizationId, name, id, taken = new HoldfastError("NAME_TAKEN", `${name} is in use.`)) {
      const isGlobal = kind.globalNames !== undefined;
      assert((organizationId === "") === isGlobal, `a name of a ${kind.name} is unique in its organization`);
      const key = nameKeyOf(kind, organizationId, name);
      claims.push({ key, taken });
      conditions.push({ key, modRevision: 0n });
      puts.push({ key, value: id });
    },
    releaseName(kind, organizationId, name) {
      deletes.push(nameKeyOf(kind, organizationId, name));
    },
    event(event) {
      record({ ...event, entry: "event" });
    },
    audit(entry) {
      writer ??= entry;
      record({ ...entry, entry: "audit" });
    },
    storeResponse({ idempotency }, response) {
      if (idempotency === undefined) return;
      const put = storedResponseOf(idempotency, idempotency.encode(response), { sealer, clock });
      responseKey = put.key;
      conditions.push({ key: put.key, modRevision: 0n });
      puts.push(put);
    },
    replaceResponse({ idempotency }, response) {
      if (idempotency === undefined) return;
      if (response === undefined) deletes.push(storedResponseKey(idempotency));
      else puts.push(storedResponseOf(idempotency, idempotency.encode(response), { sealer, clock }));
    },
    onlyWhile(condition) {
      conditions.push(condition);
    },
    async commit(signal) {
      const keys = [...puts.map(({ key }) => key), ...deletes];
      assert(new Set(keys).size === keys.length, "a unit of work changes each key at most once");
      outbox.admit(writer === undefined ? "platform" : "user");
      const refund = chargeBytes();
      const done = await store.commit({ conditions, puts, deletes }, signal);
      if (done.committed) return done.revision;
      refund?.();
      throw await conflictOf(signal);
    },
  };
}
