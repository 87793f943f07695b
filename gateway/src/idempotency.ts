import { hash } from "node:crypto";
import type { Idempotency, StoredResponse, Principal } from "@holdfast/common/call.ts";
import { createKeyedMutex } from "@holdfast/common/concurrency/mutex.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import { invalidRequest, type ParsedBody } from "./input.ts";
import { createFaults } from "./json/faults.ts";
import { hashOf } from "./json/json-node.ts";

/** The store of responses by Idempotency-Key, for 24 hours. A change stores its response in its own transaction. */
export interface StoredResponses {
  /** The stored response; throws IDEMPOTENCY_KEY_REUSED if the key was first sent with another body. */
  find(idempotency: Idempotency, signal?: AbortSignal): Promise<StoredResponse | undefined>;
  /**
   * Reserves space for one response and returns the function that releases it; throws RATE_LIMITED if there is none.
   */
  reserve(idempotency: Idempotency): () => void;
  /** Stores a response unless the key has one. */
  store(idempotency: Idempotency, response: StoredResponse, signal?: AbortSignal): Promise<void>;
}

/** The outcome of a request with an Idempotency-Key. */
export interface IdempotentOutcome {
  readonly response: StoredResponse;
  /** True if an earlier request stored the response. */
  readonly replayed: boolean;
}

/** Responds to all requests with the same Idempotency-Key with the same response. */
export interface IdempotentCalls {
  /** Calls `work` unless the key has a response. Requests with the same key run one after the other. */
  run(idempotency: Idempotency, signal: AbortSignal, work: Work): Promise<IdempotentOutcome>;
}

type Work = () => Promise<{
  readonly response: StoredResponse;
  /** True if the change has stored the response in its transaction. */
  readonly isStored: boolean;
  /** True if the handler ran; refusals before it are not stored. */
  readonly reached: boolean;
}>;

export function createIdempotentCalls({ stored, log }: { stored: StoredResponses; log: Log }): IdempotentCalls {
  const runExclusive = createKeyedMutex();

  async function once(idempotency: Idempotency, signal: AbortSignal, work: Work): Promise<IdempotentOutcome> {
    const earlier = await stored.find(idempotency, signal);
    if (earlier !== undefined) return { response: earlier, replayed: true };
    const release = stored.reserve(idempotency);
    try {
      return await runAndStore(idempotency, signal, work);
    } finally {
      release();
    }
  }

  async function runAndStore(idempotency: Idempotency, signal: AbortSignal, work: Work): Promise<IdempotentOutcome> {
    const { response, isStored, reached } = await work();
    if (isStored || !reached || !isLasting(response.status)) return { response, replayed: false };
    try {
      await stored.store(idempotency, response, signal);
      // A concurrent request on another replica may have succeeded and caused this refusal; its response was stored
      // first.
      const first = response.status < 400 ? undefined : await stored.find(idempotency, signal);
      if (first !== undefined && first.status < 400) return { response: first, replayed: true };
    } catch (error) {
      if (error instanceof HoldfastError && error.key === "IDEMPOTENCY_KEY_REUSED") throw error;
      log.warn("storing an idempotent response failed", { error });
    }
    return { response, replayed: false };
  }

  return {
    // The mutex starts only the next request of the key after a response, not all of them.
    run: (idempotency, signal, work) =>
      runExclusive(`${idempotency.scope} ${idempotency.key}`, () => once(idempotency, signal, work)),
  };
}

/** Throws INVALID_REQUEST for a malformed Idempotency-Key. */
export function checkKey(key: string): void {
  if (/^[\x20-\x7e]{1,255}$/.test(key)) return;
  const faults = createFaults();
  faults.parameter("Idempotency-Key", "invalid_key", "must be 1 to 255 printable ASCII characters");
  throw invalidRequest(faults);
}

/** An Idempotency-Key with the request that it is bound to: caller, method, path, query and body. */
export function idempotencyOf(request: {
  readonly key: string;
  readonly principal: Principal | undefined;
  readonly verb: string;
  readonly path: string;
  /** Query of the URL, percent-encoded, without the question mark. */
  readonly query: string;
  readonly body: Pick<ParsedBody, "value" | "hash">;
  readonly encode: Idempotency["encode"];
}): Idempotency {
  const { key, principal, verb, path, query, body, encode } = request;
  const bodyHash = withQuery(body.hash ?? hashOf(body.value), query);
  const { organizationId } = principal ?? {};
  // Callers without a credential share a key only if they send the same body.
  const name = principal === undefined ? `anonymous:${bodyHash}` : `${principal.kind}:${principal.id}`;
  const scope = [organizationId ?? "", name, verb, path].join(" ");
  return { key, scope, principal: principal === undefined ? "anonymous" : name, organizationId, bodyHash, encode };
}

/** The hash of body and query, in any order of parameters; without a query it is the body's hash. */
function withQuery(bodyHash: string, query: string): string {
  const pairs = query.split("&").filter((pair) => pair !== "");
  return pairs.length === 0 ? bodyHash : hash("sha256", [bodyHash, ...pairs.sort()].join("&"));
}

/** True for responses to store: no refusals of credentials or rates, and no internal errors. */
function isLasting(status: number): boolean {
  return status < 500 && status !== 401 && status !== 403 && status !== 429;
}
