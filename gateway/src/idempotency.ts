import { createHash } from "node:crypto";
import type { Idempotency, KeptAnswer, Principal } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import { canonicalText, type JsonObject } from "./json/json-node.ts";
import type { KeptAnswers } from "./kept-answers.ts";
import { invalidRequest } from "./input.ts";
import { createFaults } from "./json/faults.ts";

/** What a request with a key came to. */
export interface Outcome {
  readonly answer: KeptAnswer;
  readonly replayed: boolean;
}

/** Gives one answer to all requests with one key. */
export interface IdempotentCalls {
  /** `work` runs at most once at a time for a key; `isKept` tells whether it has kept its own answer. */
  run(idempotency: Idempotency, signal: AbortSignal, work: Work): Promise<Outcome>;
}

type Work = () => Promise<{ readonly answer: KeptAnswer; readonly isKept: boolean }>;

export function createIdempotentCalls({ kept, log }: { kept: KeptAnswers; log: Log }): IdempotentCalls {
  const running = new Map<string, Promise<unknown>>();

  async function once(idempotency: Idempotency, signal: AbortSignal, work: Work): Promise<Outcome> {
    const before = await kept.find(idempotency, signal);
    if (before !== undefined) return { answer: before, replayed: true };
    const { answer, isKept } = await work();
    if (isKept || !isLasting(answer.status)) return { answer, replayed: false };
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
      while (running.has(name)) await running.get(name);
      const call = once(idempotency, signal, work);
      running.set(name, call.then(ignore, ignore));
      try {
        return await call;
      } finally {
        running.delete(name);
      }
    },
  };
}

/** The key of a request with all that it is bound to; throws INVALID_REQUEST for one that is no key. */
export function idempotencyOf(asked: {
  readonly key: string;
  readonly principal: Principal | undefined;
  readonly verb: string;
  readonly path: string;
  readonly body: JsonObject;
  readonly encode: Idempotency["encode"];
}): Idempotency {
  const { key, principal, verb, path, body, encode } = asked;
  if (!/^[\x20-\x7e]{1,255}$/.test(key)) {
    const faults = createFaults();
    faults.parameter("Idempotency-Key", "invalid_key", "must be 1 to 255 printable ASCII characters");
    throw invalidRequest(faults);
  }
  const scope = [principal?.organizationId ?? "", `${principal?.kind}:${principal?.id}`, verb, path].join(" ");
  return { key, scope, bodyHash: createHash("sha256").update(canonicalText(body)).digest("hex"), encode };
}

/** Answers that would be the same tomorrow: not those about credentials, rates and our own failures. */
function isLasting(status: number): boolean {
  return status < 500 && status !== 401 && status !== 403 && status !== 429;
}

function ignore(): void {
  // Whoever made the call sees how it ended; those who wait only need to know that it did.
}
