import { type FieldFault, HoldfastError } from "@holdfast/common/errors.ts";
import { concatInTurns } from "@holdfast/common/in-turns.ts";
import { createWorkerThread } from "@holdfast/common/worker-thread.ts";
import type { EnqueueMessagesRequest } from "@holdfast/proto/holdfast/v1/queue_pb.ts";
import { judgePayloads, mostBytes, type PayloadVerdict, placeOf } from "./judge-payloads.ts";

/** Checks of a request's payloads; each request is examined once. */
export interface PayloadChecks {
  /** What is wrong with them but their size. */
  check(request: EnqueueMessagesRequest): Promise<readonly FieldFault[]>;
  /** Throws PAYLOAD_TOO_LARGE naming each payload that is. */
  refuseLarge(request: EnqueueMessagesRequest): Promise<void>;
}

/** Payloads, one behind the other. */
export interface PayloadQuestion {
  readonly bytes: Uint8Array;
  readonly lengths: readonly number[];
}

/** More is looked through in a thread of its own: the event loop would stand still for too long. */
const inlineBytes = 256 << 10;

export function createPayloadChecks(): PayloadChecks {
  const thread = createWorkerThread<PayloadQuestion, PayloadVerdict>(new URL("./payload-worker.ts", import.meta.url), {
    memoryMb: 256,
  });
  const verdicts = new WeakMap<EnqueueMessagesRequest, Promise<PayloadVerdict>>();

  async function judge({ messages }: EnqueueMessagesRequest): Promise<PayloadVerdict> {
    const payloads = messages.map(({ payload }) => payload);
    const lengths = payloads.map(({ length }) => length);
    if (lengths.reduce((sum, length) => sum + length, 0) <= inlineBytes) return judgePayloads(payloads);
    const bytes = await concatInTurns(payloads);
    return thread.ask({ bytes, lengths }, [bytes.buffer]);
  }

  function verdictOn(request: EnqueueMessagesRequest): Promise<PayloadVerdict> {
    const known = verdicts.get(request);
    if (known !== undefined) return known;
    const verdict = judge(request);
    verdicts.set(request, verdict);
    return verdict;
  }

  return {
    check: async (request) => (await verdictOn(request)).faults,
    async refuseLarge(request) {
      const { large } = await verdictOn(request);
      if (large.length === 0) return;
      const detail = `must have at most ${mostBytes} bytes`;
      const errors = large.map((index) => ({ ...placeOf(index), code: "payload_too_large", detail }));
      const which = errors.map(({ field }) => field).join(", ");
      throw new HoldfastError("PAYLOAD_TOO_LARGE", `${which} ${detail}.`, { errors });
    },
  };
}
