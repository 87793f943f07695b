import { createHash } from "node:crypto";
import type { Idempotency, KeptAnswer } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Sealer } from "../secrets/sealer.ts";
import {
  createKeptAnswerRoom,
  keptAnswerBytesMax,
  type KeptAnswerLimits,
  type KeptOwner,
  ownerOf,
} from "./kept-answer-room.ts";
import { root } from "./resource.ts";
import type { Store, StoredValue } from "./store.ts";

/** Answers kept for 24 h under the Idempotency-Key of their request. */
export interface KeptAnswers {
  /** The answer given before; throws IDEMPOTENCY_KEY_REUSED when the key came with another body then. */
  find(idempotency: Idempotency, signal?: AbortSignal): Promise<KeptAnswer | undefined>;
  /** Keeps an answer that changed nothing, such as a refusal. The first one of a key stays. */
  keep(idempotency: Idempotency, answer: KeptAnswer, signal?: AbortSignal): Promise<void>;
  /**
   * Takes room for one more answer, until the function that it answers is called; throws RATE_LIMITED when none is
   * left.
   */
  take(idempotency: Idempotency): () => void;
  /** Removes answers older than a day; resolves to their number. */
  sweep(signal: AbortSignal): Promise<number>;
  close(): void;
}

interface Deps {
  readonly sealer: Sealer;
  readonly clock: Clock;
}

interface KeptRecord extends KeptOwner {
  readonly bodyHash: string;
  readonly expiresAt: number;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** As it was sent, or sealed text. */
  readonly body: string;
  readonly secret: boolean;
}

const prefix = `${root}/idempotency/`;
const keepMs = 24 * 3_600_000;

export function createKeptAnswers({
  store,
  sealer,
  clock,
  limits,
}: Deps & { readonly store: Store; readonly limits?: KeptAnswerLimits }): KeptAnswers {
  const room = createKeptAnswerRoom(store, prefix, limits);

  async function remove({ key, modRevision }: StoredValue, signal: AbortSignal | undefined): Promise<void> {
    await store.commit({ conditions: [{ key, modRevision }], puts: [], deletes: [key] }, signal);
  }

  return {
    async find(idempotency, signal) {
      const value = await store.get(keptAnswerKey(idempotency), signal);
      if (value === undefined) return undefined;
      const record: KeptRecord = JSON.parse(value.value);
      if (record.expiresAt <= clock.now()) {
        await remove(value, signal);
        return undefined;
      }
      if (record.bodyHash !== storedHash(idempotency, sealer)) {
        throw new HoldfastError("IDEMPOTENCY_KEY_REUSED", "The key came with another body or query before.");
      }
      const { status, headers, secret } = record;
      return { status, headers, secret, body: secret ? sealer.open(record.body, value.key) : record.body };
    },
    take: room.take,
    async keep(idempotency, answer, signal) {
      const put = keptAnswerOf(idempotency, answer, { sealer, clock });
      await store.commit({ conditions: [{ key: put.key, modRevision: 0n }], puts: [put], deletes: [] }, signal);
    },
    async sweep(signal) {
      let swept = 0;
      for (let after: string | undefined; ; ) {
        const page = await store.list(prefix, { limit: 200, ...(after !== undefined && { after }) }, signal);
        for (const value of page.values) {
          const { expiresAt }: KeptRecord = JSON.parse(value.value);
          if (expiresAt > clock.now()) continue;
          await remove(value, signal);
          swept += 1;
        }
        after = page.values.at(-1)?.key;
        if (!page.more) return swept;
      }
    },
    close: room.close,
  };
}

/** The key and value that keep an answer. */
export function keptAnswerOf(
  idempotency: Idempotency,
  { status, headers, body, secret }: KeptAnswer,
  { sealer, clock }: Deps,
): { key: string; value: string } {
  const key = keptAnswerKey(idempotency);
  if (body.length > keptAnswerBytesMax) {
    throw new HoldfastError(
      "NOT_POSSIBLE",
      "The answer is too large to be kept. Send the request without Idempotency-Key.",
    );
  }
  const record: KeptRecord = {
    ...ownerOf(idempotency),
    bodyHash: storedHash(idempotency, sealer),
    expiresAt: clock.now() + keepMs,
    status,
    headers,
    body: secret ? sealer.seal(body, key) : body,
    secret,
  };
  return { key, value: JSON.stringify(record) };
}

/** A body may hold a password, so its bare hash could be guessed at. */
function storedHash({ bodyHash }: Idempotency, sealer: Sealer): string {
  return sealer.keyedHash("idempotency-body", bodyHash);
}

/** The key of a request's kept answer. */
export function keptAnswerKey({ scope, key }: Idempotency): string {
  return (
    prefix +
    createHash("sha256")
      .update(JSON.stringify([scope, key]))
      .digest("hex")
  );
}
