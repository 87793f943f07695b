import assert from "node:assert";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { AnyMessage, Call } from "@holdfast/common/call.ts";
import type { Sealer } from "../secrets/sealer.ts";
import { keptAnswerKey, keptAnswerOf } from "./kept-answers.ts";
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
import type { Writer, WrittenBytes } from "./written-bytes.ts";

export interface UnitOfWorkDeps {
  readonly outbox: OutboxGate;
  /** Absent: written bytes are not counted. */
  readonly written?: WrittenBytes;
  readonly sealer: Sealer;
  readonly clock: Clock;
  /** Ids of events and audit entries: UUIDv7, growing. */
  readonly ids: () => string;
}

/** Says when too many events and audit entries wait for the history. */
export interface OutboxGate {
  /** Throws STORE_UNAVAILABLE when nothing more of this kind may wait. */
  admit(cause: "user" | "platform"): void;
}

/**
 * One change of the store with all that must not be lost beside it: events, the audit entry, the idempotency record,
 * in the same transaction.
 */
export interface UnitOfWork {
  create<R extends Resource<unknown, unknown>>(kind: Kind<R>, object: R): void;
  /** Compare-and-set on the revision that was read. */
  update<R extends Resource<unknown, unknown>>(kind: Kind<R>, before: Stored<R>, after: R): void;
  remove<R extends Resource<unknown, unknown>>(kind: Kind<R>, before: Stored<R>): void;
  /** Compare-and-set of a key that is no object's, such as the authority's record; revision 0 for a missing key. */
  replace(key: string, modRevision: bigint, value: string): void;
  /**
   * Claims a name in an organization; the commit throws NAME_TAKEN if another object has it. The organization is empty
   * for kinds with `globalNames` alone: any other answer would tell a tenant which names others use.
   */
  claimName(kind: KindName, organizationId: string, name: string, id: string): void;
  releaseName(kind: KindName, organizationId: string, name: string): void;
  event(event: NewEvent): void;
  audit(entry: NewAudit): void;
  /** Keeps the answer for the call's Idempotency-Key, sealed when it holds a secret. Nothing without a key. */
  answer(call: Call, answer: AnyMessage): void;
  /** Replaces the answer that an earlier unit of work of the call has kept; without one nothing is kept. */
  answerInstead(call: Call, answer: AnyMessage | undefined): void;
  /**
   * The commit throws Conflict unless the key still has this revision, such as the claim of the shard that allows it.
   */
  onlyWhile(condition: { readonly key: string; readonly modRevision: bigint }): void;
  /**
   * Throws Conflict when something read has changed meanwhile: read again and redo. Throws NAME_TAKEN, AlreadyAnswered,
   * RATE_LIMITED past the bytes that the caller may write in an hour, and STORE_UNAVAILABLE when etcd does not answer
   * or too many entries wait for the history.
   */
  commit(signal?: AbortSignal): Promise<bigint>;
}

/**
 * Another call with the same Idempotency-Key was first, on another replica: its answer is this call's answer too. Not
 * to be redone; the gateway finds that answer.
 */
export class AlreadyAnswered extends HoldfastError {
  override readonly name = "AlreadyAnswered";

  constructor() {
    super("OPERATION_IN_PROGRESS", "Another request with this Idempotency-Key was answered meanwhile.");
  }
}

/** Another writer was first. */
export class Conflict extends Error {
  override readonly name = "Conflict";
}

export function createUnitOfWork(store: Store, { outbox, written, sealer, clock, ids }: UnitOfWorkDeps): UnitOfWork {
  const conditions: { key: string; modRevision: bigint }[] = [];
  const puts: { key: string; value: string }[] = [];
  const deletes: string[] = [];
  const claims: { key: string; name: string }[] = [];
  let answerKey: string | undefined;
  let writer: Writer | undefined;

  function record(entry: Omit<EventEntry, "id" | "occurredAt"> | Omit<AuditEntry, "id" | "occurredAt">): void {
    const id = ids();
    puts.push({ key: outboxKeyOf(id), value: JSON.stringify({ ...entry, id, occurredAt: clock.now() }) });
  }

  /** A unit that only removes makes room, so no limit applies to it. */
  function takeBytes(): (() => void) | undefined {
    if (writer === undefined || puts.every(({ key }) => key.startsWith(outboxPrefix))) return undefined;
    return written?.take(
      writer,
      puts.reduce((sum, { key, value }) => sum + key.length + value.length, 0),
    );
  }

  /** The reason of a broken condition, by the values in the store now. */
  async function refusal(signal: AbortSignal | undefined): Promise<Error> {
    if (answerKey !== undefined && (await store.get(answerKey, signal)) !== undefined) return new AlreadyAnswered();
    for (const { key, name } of claims) {
      if ((await store.get(key, signal)) !== undefined) return new HoldfastError("NAME_TAKEN", `${name} is in use.`);
    }
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
    claimName(kind, organizationId, name, id) {
      const isGlobal = kind.globalNames !== undefined;
      assert((organizationId === "") === isGlobal, `a name of a ${kind.name} is unique in its organization`);
      const key = nameKeyOf(kind, organizationId, name);
      claims.push({ key, name });
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
    answer({ idempotency }, answer) {
      if (idempotency === undefined) return;
      const put = keptAnswerOf(idempotency, idempotency.encode(answer), { sealer, clock });
      answerKey = put.key;
      conditions.push({ key: put.key, modRevision: 0n });
      puts.push(put);
    },
    answerInstead({ idempotency }, answer) {
      if (idempotency === undefined) return;
      if (answer === undefined) deletes.push(keptAnswerKey(idempotency));
      else puts.push(keptAnswerOf(idempotency, idempotency.encode(answer), { sealer, clock }));
    },
    onlyWhile(condition) {
      conditions.push(condition);
    },
    async commit(signal) {
      const keys = [...puts.map(({ key }) => key), ...deletes];
      assert(new Set(keys).size === keys.length, "each key changes once in a unit of work");
      outbox.admit(writer === undefined ? "platform" : "user");
      const giveBack = takeBytes();
      const done = await store.commit({ conditions, puts, deletes }, signal);
      if (done.committed) return done.revision;
      giveBack?.();
      throw await refusal(signal);
    },
  };
}
