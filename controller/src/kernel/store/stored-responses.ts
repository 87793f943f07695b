import { createHash } from "node:crypto";
import type { Idempotency, StoredResponse } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Sealer } from "../secrets/sealer.ts";
import {
  createStoredResponseBudget,
  storedResponseBytesMax,
  type StoredResponseLimits,
  type ResponseOwner,
  responseOwnerOf,
} from "./stored-response-budget.ts";
import { root } from "./resource.ts";
import type { Store, StoredValue } from "./store.ts";

/** Responses stored for 24 h under the Idempotency-Key of their request. */
export interface StoredResponses {
  /**
   * The stored response; undefined without one. Throws IDEMPOTENCY_KEY_REUSED if the key was used with another body.
   */
  find(idempotency: Idempotency, signal?: AbortSignal): Promise<StoredResponse | undefined>;
  /** Stores a response to a call that changed nothing, such as a refusal. The first response of a key remains. */
  store(idempotency: Idempotency, response: StoredResponse, signal?: AbortSignal): Promise<void>;
  /**
   * Reserves space for one more response, until the returned function is called. Throws RATE_LIMITED if a limit is
   * reached.
   */
  reserve(idempotency: Idempotency): () => void;
  /** Deletes responses older than a day; resolves to their number. */
  sweep(signal: AbortSignal): Promise<number>;
  close(): void;
}

interface Deps {
  readonly sealer: Sealer;
  readonly clock: Clock;
}

interface StoredResponseRecord extends ResponseOwner {
  readonly bodyHash: string;
  readonly expiresAt: number;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Body of the response; sealed if `secret`. */
  readonly body: string;
  readonly secret: boolean;
}

const prefix = `${root}/idempotency/`;
const retentionMs = 24 * 3_600_000;

export function createStoredResponses({
  store,
  sealer,
  clock,
  limits,
}: Deps & { readonly store: Store; readonly limits?: StoredResponseLimits }): StoredResponses {
  const budget = createStoredResponseBudget(store, prefix, limits);

  async function remove({ key, modRevision }: StoredValue, signal: AbortSignal | undefined): Promise<void> {
    await store.commit({ conditions: [{ key, modRevision }], puts: [], deletes: [key] }, signal);
  }

  return {
    async find(idempotency, signal) {
      const value = await store.get(storedResponseKey(idempotency), signal);
      if (value === undefined) return undefined;
      const record: StoredResponseRecord = JSON.parse(value.value);
      if (record.expiresAt <= clock.now()) {
        await remove(value, signal);
        return undefined;
      }
      if (record.bodyHash !== storedHash(idempotency, sealer)) {
        throw new HoldfastError("IDEMPOTENCY_KEY_REUSED", "The key was used with another body or query before.");
      }
      const { status, headers, secret } = record;
      return { status, headers, secret, body: secret ? sealer.open(record.body, value.key) : record.body };
    },
    reserve: budget.reserve,
    async store(idempotency, response, signal) {
      const put = storedResponseOf(idempotency, response, { sealer, clock });
      await store.commit({ conditions: [{ key: put.key, modRevision: 0n }], puts: [put], deletes: [] }, signal);
    },
    async sweep(signal) {
      let swept = 0;
      for (let after: string | undefined; ; ) {
        const page = await store.list(prefix, { limit: 200, ...(after !== undefined && { after }) }, signal);
        for (const value of page.values) {
          const { expiresAt }: StoredResponseRecord = JSON.parse(value.value);
          if (expiresAt > clock.now()) continue;
          await remove(value, signal);
          swept += 1;
        }
        after = page.values.at(-1)?.key;
        if (!page.more) return swept;
      }
    },
    close: budget.close,
  };
}

/** The key and value of a stored response. */
export function storedResponseOf(
  idempotency: Idempotency,
  { status, headers, body, secret }: StoredResponse,
  { sealer, clock }: Deps,
): { key: string; value: string } {
  const key = storedResponseKey(idempotency);
  if (body.length > storedResponseBytesMax) {
    throw new HoldfastError(
      "NOT_POSSIBLE",
      "The response is too large to be stored. Send the request without Idempotency-Key.",
    );
  }
  const record: StoredResponseRecord = {
    ...responseOwnerOf(idempotency),
    bodyHash: storedHash(idempotency, sealer),
    expiresAt: clock.now() + retentionMs,
    status,
    headers,
    body: secret ? sealer.seal(body, key) : body,
    secret,
  };
  return { key, value: JSON.stringify(record) };
}

/** A body may contain a password, and a plain hash of it could be guessed, so the hash is keyed. */
function storedHash({ bodyHash }: Idempotency, sealer: Sealer): string {
  return sealer.keyedHash("idempotency-body", bodyHash);
}

/** The etcd key of a request's stored response. */
export function storedResponseKey({ scope, key }: Idempotency): string {
  return (
    prefix +
    createHash("sha256")
      .update(JSON.stringify([scope, key]))
      .digest("hex")
  );
}
