import { pause } from "../retry.ts";
import type { Backend, Claim, NackRequest } from "./backend.ts";
import { type ErrorText, errorText, type IntegerSeconds, integerSeconds } from "./values.ts";

/** The methods of the `@holdfast/sdk` client that a worker uses. Computed values have types that the API accepts. */
export interface QueueClient {
  readonly queues: {
    get(serviceId: string, name: string): Promise<{ readonly visibility_timeout_seconds: number }>;
    enqueue(
      serviceId: string,
      name: string,
      request: { readonly messages: readonly { readonly payload: object; readonly delay_seconds: IntegerSeconds }[] },
    ): Promise<{ readonly task_id: string }>;
    messages(
      serviceId: string,
      name: string,
      query: { readonly task_id: string },
    ): Promise<{
      readonly status: unknown;
      readonly result: unknown;
      readonly error: { readonly message: string } | null;
    }>;
    claim(
      serviceId: string,
      name: string,
      claim: {
        readonly max: number;
        readonly visibility_timeout_seconds: IntegerSeconds;
        readonly wait_seconds: number;
      },
    ): Promise<{ readonly messages: readonly HttpMessage[] }>;
    ack(serviceId: string, name: string, request: Batch<Receipt>): Promise<Receipts>;
    nack(serviceId: string, name: string, request: Batch<NackedReceipt>): Promise<Receipts>;
    extend(
      serviceId: string,
      name: string,
      request: Batch<Receipt & { readonly visibility_timeout_seconds: IntegerSeconds }>,
    ): Promise<Receipts>;
  };
}

interface HttpMessage {
  readonly id: number | string;
  readonly payload: unknown;
  readonly attempt_count: number;
  readonly enqueued_at: string;
  readonly receipt: string;
}

interface Receipt {
  readonly receipt: string;
}

interface NackedReceipt extends Receipt {
  readonly delay_seconds: IntegerSeconds;
  readonly error?: ErrorText;
  readonly discard: boolean;
}

interface Batch<M> {
  readonly messages: readonly M[];
}

interface Receipts {
  readonly lost: readonly string[];
}

const maxBatch = 100;
const minPollIntervalMs = 10;
const maxPollIntervalMs = 1000;

const invalidStatuses = new Set([400, 413, 422]);
const permanentStatuses = new Set([...invalidStatuses, 401, 403, 404, 409]);

/** A queue over HTTP. Tokens of claims are receipts; each request has at most 100 messages. */
export function createHttpBackend({ queues }: QueueClient, service: string, queue: string): Backend {
  /** Sends claims in requests of 100; resolves to the ids of messages whose claims were lost. */
  async function settle(
    claims: readonly Claim[],
    send: (claims: readonly Claim[]) => Promise<Receipts>,
  ): Promise<ReadonlySet<string>> {
    const lost = new Set<string>();
    for (const part of partsOf(claims)) {
      const receipts = new Set((await send(part)).lost);
      for (const { id, token } of part) if (receipts.has(token)) lost.add(id);
    }
    return lost;
  }
  const ack = (claims: readonly Claim[]) =>
    settle(claims, (part) => queues.ack(service, queue, { messages: part.map(({ token }) => ({ receipt: token })) }));
  const nack = (claims: readonly Claim[], { delaySeconds, error, discard }: NackRequest) => {
    const request = { delay_seconds: integerSeconds(delaySeconds), discard, ...(error !== undefined && { error }) };
    return settle(claims, (part) =>
      queues.nack(service, queue, { messages: part.map(({ token }) => ({ receipt: token, ...request })) }),
    );
  };

  async function idsOf(taskId: string): Promise<string[]> {
    for (let intervalMs = minPollIntervalMs; ; intervalMs = Math.min(intervalMs * 2, maxPollIntervalMs)) {
      const task = await queues.messages(service, queue, { task_id: taskId });
      if (task.status === "failed") throw new Error(task.error?.message ?? "the messages were refused");
      if (task.status === "completed")
        return (task.result as { readonly message_ids: readonly (number | string)[] }).message_ids.map(String);
      await pause(intervalMs);
    }
  }

  return {
    claimMax: maxBatch,
    async enqueue(payloads, delaySeconds, within) {
      if (within !== undefined) throw new TypeError("a queue over HTTP cannot take part in a transaction");
      const ids: string[] = [];
      for (const part of partsOf(payloads)) {
        const messages = part.map((payload) => ({ payload, delay_seconds: integerSeconds(delaySeconds) }));
        ids.push(...(await idsOf((await queues.enqueue(service, queue, { messages })).task_id)));
      }
      return ids;
    },
    visibilitySeconds: async () => (await queues.get(service, queue)).visibility_timeout_seconds,
    async claim({ max, visibilitySeconds, acks }) {
      const lost = await ack(acks);
      const request = { max, visibility_timeout_seconds: integerSeconds(visibilitySeconds), wait_seconds: 0 };
      const { messages } = await queues.claim(service, queue, request);
      return {
        lost,
        messages: messages.map((message) => ({
          id: String(message.id),
          token: message.receipt,
          payload: message.payload,
          attemptCount: message.attempt_count,
          enqueuedAt: new Date(message.enqueued_at),
        })),
      };
    },
    ack,
    nack: (claim, request) => nack([claim], request),
    extend: (claims, seconds) =>
      settle(claims, (part) =>
        queues.extend(service, queue, {
          messages: part.map(({ token }) => ({
            receipt: token,
            visibility_timeout_seconds: integerSeconds(seconds),
          })),
        }),
      ),
    release: (claims) => nack(claims, { delaySeconds: 0, error: errorText("not started"), discard: false }),
    isPermanent: (error) => permanentStatuses.has(statusOf(error)),
    isInvalid: (error) => invalidStatuses.has(statusOf(error)),
  };
}

/** The HTTP status of an error; 0 for other errors. */
function statusOf(error: unknown): number {
  return error instanceof Error && "status" in error ? Number(error.status) : 0;
}

function partsOf<T>(all: readonly T[]): (readonly T[])[] {
  return Array.from({ length: Math.ceil(all.length / maxBatch) }, (_, index) =>
    all.slice(index * maxBatch, (index + 1) * maxBatch),
  );
}
