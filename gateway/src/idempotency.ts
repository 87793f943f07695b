import { hash } from "node:crypto";
import type { Idempotency, KeptAnswer, Principal } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import { invalidRequest, type ParsedBody } from "./input.ts";
import { createFaults } from "./json/faults.ts";
import { hashOf } from "./json/json-node.ts";
import type { KeptAnswers } from "./kept-answers.ts";

/** Outcome of a request with a key. */
export interface Outcome {
  readonly answer: KeptAnswer;
  readonly replayed: boolean;
}

/** Gives one answer to all requests with one key. */
export interface IdempotentCalls {
  /** `work` runs at most once at a time for a key; `isKept` tells whether it has kept its own answer. */
  run(idempotency: Idempotency, signal: AbortSignal, work: Work): Promise<Outcome>;
}

/** `reached` tells whether the request came to its handler: an earlier refusal is not kept, and made anew each time. */
type Work = () => Promise<{ readonly answer: KeptAnswer; readonly isKept: boolean; readonly reached: boolean }>;

export function createIdempotentCalls({ kept, log }: { kept: KeptAnswers; log: Log }): IdempotentCalls {
  /** The last in line for each key. */
  const lines = new Map<string, Promise<unknown>>();

  async function once(idempotency: Idempotency, signal: AbortSignal, work: Work): Promise<Outcome> {
    const before = await kept.find(idempotency, signal);
    if (before !== undefined) return { answer: before, replayed: true };
    const giveBack = kept.take(idempotency);
    try {
      return await withRoom(idempotency, signal, work);
    } finally {
      giveBack();
    }
  }

  async function withRoom(idempotency: Idempotency, signal: AbortSignal, work: Work): Promise<Outcome> {
    const { answer, isKept, reached } = await work();
    if (isKept || !reached || !isLasting(answer.status)) return { answer, replayed: false };
    try {
      await kept.keep(idempotency, answer, signal);
      // A refusal may be the shadow of a success on another replica, whose answer was kept first.
      const first = answer.status < 400 ? undefined : await kept.find(idempotency, signal);
      if (first !== undefined && first.status < 400) return { answer: first, replayed: true };
    } catch (error) {
      if (error instanceof HoldfastError && error.key === "IDEMPOTENCY_KEY_REUSED") throw error;
      log.warn("answer not kept", { error });
    }
    return { answer, replayed: false };
  }

  return {
    async run(idempotency, signal, work) {
      const name = `${idempotency.scope} ${idempotency.key}`;
      // Each waits for the one before it and for no other, so that an answer wakes one of them.
      const call = (lines.get(name) ?? Promise.resolve()).then(() => once(idempotency, signal, work));
      const over = call.then(ignore, ignore);
      lines.set(name, over);
      try {
        return await call;
      } finally {
        if (lines.get(name) === over) lines.delete(name);
      }
    },
  };
}

/** Throws INVALID_REQUEST for a malformed Idempotency-Key. */
export function checkKey(key: string): void {
  if (/^[\x20-\x7e]{1,255}$/.test(key)) return;
  const faults = createFaults();
  faults.parameter("Idempotency-Key", "invalid_key", "must be 1 to 255 printable ASCII characters");
  throw invalidRequest(faults);
}

/** The key of a request with all that it is bound to. */
export function idempotencyOf(asked: {
  readonly key: string;
  readonly principal: Principal | undefined;
  readonly verb: string;
  readonly path: string;
  /** Of the URL, as sent. */
  readonly query: string;
  readonly body: Pick<ParsedBody, "value" | "hash">;
  readonly encode: Idempotency["encode"];
}): Idempotency {
  const { key, principal, verb, path, query, body, encode } = asked;
  const bodyHash = withQuery(body.hash ?? hashOf(body.value), query);
  const { organizationId } = principal ?? {};
  // Callers without a credential never share a key.
  const name = principal === undefined ? `anonymous:${bodyHash}` : `${principal.kind}:${principal.id}`;
  const scope = [organizationId ?? "", name, verb, path].join(" ");
  return { key, scope, principal: principal === undefined ? "anonymous" : name, organizationId, bodyHash, encode };
}

/** Without a query it is the body's own hash; the order of parameters changes nothing. */
function withQuery(bodyHash: string, query: string): string {
  const pairs = query.split("&").filter((pair) => pair !== "");
  return pairs.length === 0 ? bodyHash : hash("sha256", [bodyHash, ...pairs.sort()].join("&"));
}

/** Answers that would be the same tomorrow: not those about credentials, rates and our own failures. */
function isLasting(status: number): boolean {
  return status < 500 && status !== 401 && status !== 403 && status !== 429;
}

function ignore(): void {
  // The first caller gets the error; repetitions of the call only wait for its end.
}
