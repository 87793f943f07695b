import { type FieldFault, HoldfastError } from "@holdfast/common/errors.ts";
import { concatIncrementally } from "@holdfast/common/incremental.ts";
import { createWorkerThread } from "@holdfast/common/worker-thread.ts";
import type { EnqueueMessagesRequest } from "@holdfast/proto/holdfast/v1/queue_pb.ts";
import { examinePayloads, payloadBytesMax, type PayloadVerdict, fieldOf } from "./examine-payloads.ts";

/** Checks a request's payloads; each request is examined once. */
export interface PayloadChecks {
  /** Faults of the payloads except excessive size. */
  check(request: EnqueueMessagesRequest): Promise<readonly FieldFault[]>;
  /** Throws PAYLOAD_TOO_LARGE that names each oversized payload. */
  refuseLarge(request: EnqueueMessagesRequest): Promise<void>;
}

/** Concatenated payloads, for the worker thread. */
export interface PayloadBatch {
  readonly bytes: Uint8Array;
  readonly lengths: readonly number[];
}

/** Size in bytes above which requests are examined in a worker thread, so that they do not block the event loop. */
const inlineBytes = 256 << 10;

export function createPayloadChecks(): PayloadChecks {
  const thread = createWorkerThread<PayloadBatch, PayloadVerdict>(new URL("./payload-worker.ts", import.meta.url), {
    memoryMb: 256,
  });
  const verdicts = new WeakMap<EnqueueMessagesRequest, Promise<PayloadVerdict>>();

  async function examine({ messages }: EnqueueMessagesRequest): Promise<PayloadVerdict> {
    const payloads = messages.map(({ payload }) => payload);
    const lengths = payloads.map(({ length }) => length);
    if (lengths.reduce((sum, length) => sum + length, 0) <= inlineBytes) return examinePayloads(payloads);
    const bytes = await concatIncrementally(payloads);
    return thread.request({ bytes, lengths }, [bytes.buffer]);
  }

  function verdictOn(request: EnqueueMessagesRequest): Promise<PayloadVerdict> {
    const cached = verdicts.get(request);
    if (cached !== undefined) return cached;
    const verdict = examine(request);
    verdicts.set(request, verdict);
    return verdict;
  }

  return {
    check: async (request) => (await verdictOn(request)).faults,
    async refuseLarge(request) {
      const { large } = await verdictOn(request);
      if (large.length === 0) return;
      const detail = `must have at most ${payloadBytesMax} bytes`;
      const errors = large.map((index) => ({ ...fieldOf(index), code: "payload_too_large", detail }));
      const which = errors.map(({ field }) => field).join(", ");
      throw new HoldfastError("PAYLOAD_TOO_LARGE", `${which} ${detail}.`, { errors });
    },
  };
}
