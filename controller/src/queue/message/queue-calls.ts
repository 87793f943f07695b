import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { createKeyedCounter } from "@holdfast/common/concurrency/keyed-counter.ts";
import { type ErrorKey, HoldfastError } from "@holdfast/common/errors.ts";
import { concatIncrementally, groupsBySize } from "@holdfast/common/incremental.ts";
import {
  QueueRequestSchema,
  type QueueResponse,
  QueueResponseSchema,
} from "@holdfast/proto/holdfast/agent/v1/queue_call_pb.ts";
import { CallQueueSchema, type PackedContent, type TaskFailure } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { PackedContents } from "#fleet/payload/payloads.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import type { QueueObject } from "../queue.ts";
import { taskTarget } from "#services/service/member/member-roles.ts";

export interface QueueCallsDeps {
  readonly fleet: Pick<Fleet, "run">;
  readonly contents: PackedContents;
  /** Called after the engine refused a request about a queue of the service. */
  readonly refused: (serviceId: string) => void;
}

type Responses = QueueResponse["response"];

/** A queue with its service. */
export interface TargetQueue {
  readonly service: ManagedServiceObject;
  readonly queue: Pick<QueueObject, "metadata" | "spec">;
}

/** Requests about messages to the agent of a service's primary. Messages are not stored, and not in errors. */
export interface QueueCalls {
  /**
   * Throws MACHINE_UNREACHABLE if no response arrives in time, RATE_LIMITED above the concurrency limit of a service or
   * its machine, and errors that the database reports about queue and payloads.
   */
  call<C extends Responses["case"] & string>(
    target: TargetQueue,
    request: MessageInitShape<typeof QueueRequestSchema>["request"],
    responseCase: C,
    options: {
      readonly signal: AbortSignal;
      readonly waitMs?: number;
      /** Additional time besides the 5 s of each request and the `waitMs` of a claim. */
      readonly extraMs?: number;
      /** Messages of an enqueue. */
      readonly messages?: readonly SentMessage[];
    },
  ): Promise<Extract<Responses, { case: C }>["value"]>;
}

const timeoutMs = 5_000;
const callsMax = 32;
const waitingCallsMax = 64;

// biome-ignore format: a table, aligned so that it reads as one
const failures: ReadonlyMap<string, ErrorKey> = new Map(
  Object.entries<ErrorKey>({
  queue_not_active:  "QUEUE_NOT_ACTIVE",
  payload_too_large: "PAYLOAD_TOO_LARGE",
  payload_not_valid: "ENGINE_REFUSED",
  out_of_range:      "ENGINE_REFUSED",
  engine_refused:    "ENGINE_REFUSED",
  task_conflict:     "IDEMPOTENCY_KEY_REUSED",
  not_supported:     "NOT_SUPPORTED",
  no_room:           "STORAGE_FULL",
}),
);

export function createQueueCalls({ fleet, contents, refused }: QueueCallsDeps): QueueCalls {
  const working = createConcurrencyLimit(callsMax);
  const waiting = createConcurrencyLimit(waitingCallsMax);

  return {
    async call({ service, queue }, request, responseCase, options) {
      const { signal, waitMs = 0, extraMs = 0, messages = [] } = options;
      const { id: serviceId } = service.metadata;
      const { id: machineId } = taskTarget(service);
      const release = (waitMs > 0 ? waiting : working).take(serviceId);
      let requestContent: PackedContent | undefined;
      let responseContent: PackedContent | undefined;
      try {
        const queueRequest = { queue: queue.metadata.name, ...(request && { request }) };
        requestContent = await contents.pack(machineId, await encodeRequest(queueRequest, messages), signal);
        const deadlineMs = waitMs + timeoutMs + extraMs;
        const task = {
          ownerId: serviceId,
          generation: service.spec.instanceGeneration,
          term: service.status.term,
          lane: "queue",
          input: {
            case: "callQueue",
            value: create(CallQueueSchema, { database: queue.spec.databaseName, request: requestContent }),
          },
          deadlineMs,
        } as const;
        const result = await fleet.run(machineId, task, deadlineMs, signal);
        const { failure, output } = result;
        if (failure?.code === "engine_refused") refused(serviceId);
        if (failure !== undefined) throw errorOf(failure);
        if (output.case !== "callQueue" || output.value.response === undefined)
          throw unreachable("Its response was empty.");
        responseContent = output.value.response;
        const { response } = fromBinary(QueueResponseSchema, await contents.unpack(machineId, responseContent, signal));
        if (response.case !== responseCase) throw new Error(`the request has the response ${response.case}`);
        return response.value as never;
      } finally {
        release();
        for (const content of [requestContent, responseContent])
          if (content !== undefined) await contents.drop(machineId, content);
      }
    },
  };
}

/** Limits concurrent calls of each service; throws RATE_LIMITED at the limit. */
function createConcurrencyLimit(max: number): { take(serviceId: string): () => void } {
  const inFlight = createKeyedCounter();
  return {
    take(serviceId) {
      const taken = inFlight.take([{ key: serviceId, max }]);
      if (taken.exceeded === undefined) return taken.release;
      throw new HoldfastError("RATE_LIMITED", `${max} such requests of the service are in progress.`, {
        retryAfterS: 1,
      });
    },
  };
}

function errorOf({ code, message }: TaskFailure): HoldfastError {
  const key = failures.get(code);
  if (key === undefined) return unreachable("Its engine did not complete it in time.");
  // An engine's message about a payload may contain parts of it.
  const detail = key === "ENGINE_REFUSED" && code !== "engine_refused" ? "The database refused a payload." : message;
  return new HoldfastError(key, detail, key === "RATE_LIMITED" ? { retryAfterS: 1 } : {});
}

function unreachable(detail: string): HoldfastError {
  return new HoldfastError("MACHINE_UNREACHABLE", `The machine did not respond. ${detail}`);
}

/** A message to enqueue, with the bytes of its payload from the request. */
export interface SentMessage {
  readonly payload: Uint8Array;
  readonly delaySeconds: number;
}

/**
 * Encodes the request and its messages in protobuf wire format. Groups of messages are encoded as concatenated
 * requests, which a protobuf parser merges into one, and the function yields to the event loop between groups.
 */
export async function encodeRequest(
  request: MessageInitShape<typeof QueueRequestSchema>,
  messages: readonly SentMessage[],
): Promise<Uint8Array> {
  const parts = [toBinary(QueueRequestSchema, create(QueueRequestSchema, request))];
  for (const group of groupsBySize(messages, ({ payload }) => payload.byteLength)) {
    if (parts.length > 1) await yieldToEventLoop();
    parts.push(toBinary(QueueRequestSchema, create(QueueRequestSchema, { request: enqueueOf(group) })));
  }
  return concatIncrementally(parts);
}

function enqueueOf(group: readonly SentMessage[]) {
  const messages = group.map(({ payload, delaySeconds }) => ({
    payload: Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString("utf8"),
    delaySeconds,
  }));
  return { case: "enqueue", value: { messages } } as const;
}
