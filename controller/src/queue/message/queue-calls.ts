import { create, fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { type ErrorKey, HoldfastError } from "@holdfast/common/errors.ts";
import {
  type QueueAnswer,
  QueueAnswerSchema,
  type QueueRequestSchema,
} from "@holdfast/proto/holdfast/agent/v1/queue_call_pb.ts";
import { CallQueueSchema, type PackedContent, type TaskFailure } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { PackedContents } from "#fleet/payload/packed-contents.ts";
import { type ManagedServiceObject, primaryOf } from "#services/service/managed-service.ts";
import type { QueueObject } from "../queue.ts";
import { encodeRequest, type SentMessage } from "./encode-request.ts";

export interface QueueCallsDeps {
  readonly fleet: Pick<Fleet, "run">;
  readonly contents: PackedContents;
  /** The engine refused something about a queue of the service. */
  readonly refused: (serviceId: string) => void;
}

type Answers = QueueAnswer["answer"];

/** A queue with its service. */
export interface AskedQueue {
  readonly service: ManagedServiceObject;
  readonly queue: Pick<QueueObject, "metadata" | "spec">;
}

/** Requests about messages, to the agent of a service's primary. No part of them is stored, or shown in an error. */
export interface QueueCalls {
  /**
   * Throws MACHINE_UNREACHABLE without an answer in time, RATE_LIMITED past the limit of a service or its machine, and
   * the database's own errors about queue and payloads.
   */
  call<C extends Answers["case"] & string>(
    found: AskedQueue,
    request: MessageInitShape<typeof QueueRequestSchema>["request"],
    answer: C,
    options: {
      readonly signal: AbortSignal;
      readonly waitMs?: number;
      /** Beside the 5 s that each request has, and the time that a claim waits. */
      readonly extraMs?: number;
      /** Of an enqueue. */
      readonly messages?: readonly SentMessage[];
    },
  ): Promise<Extract<Answers, { case: C }>["value"]>;
}

const timeoutMs = 5_000;
const atOnce = 32;
const waitingAtOnce = 64;

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
  const working = createPlaces(atOnce);
  const waiting = createPlaces(waitingAtOnce);

  return {
    async call({ service, queue }, request, wanted, options) {
      const { signal, waitMs = 0, extraMs = 0, messages = [] } = options;
      const { id: serviceId } = service.metadata;
      const { id: machineId } = primaryOf(service);
      const free = (waitMs > 0 ? waiting : working).take(serviceId);
      let asked: PackedContent | undefined;
      let answered: PackedContent | undefined;
      try {
        const asking = { queue: queue.metadata.name, ...(request && { request }) };
        asked = await contents.pack(machineId, await encodeRequest(asking, messages), signal);
        const deadlineMs = waitMs + timeoutMs + extraMs;
        const task = {
          ownerId: serviceId,
          generation: service.spec.instanceGeneration,
          term: service.status.term,
          lane: "queue",
          input: {
            case: "callQueue",
            value: create(CallQueueSchema, { database: queue.spec.databaseName, request: asked }),
          },
          deadlineMs,
        } as const;
        const result = await fleet.run(machineId, task, deadlineMs, signal);
        const { failure, output } = result;
        if (failure?.code === "engine_refused") refused(serviceId);
        if (failure !== undefined) throw errorOf(failure);
        if (output.case !== "callQueue" || output.value.answer === undefined) throw unreachable("It gave no answer.");
        answered = output.value.answer;
        const { answer } = fromBinary(QueueAnswerSchema, await contents.unpack(machineId, answered, signal));
        if (answer.case !== wanted) throw new Error(`a request was answered with ${answer.case}`);
        return answer.value as never;
      } finally {
        free();
        for (const content of [asked, answered]) if (content !== undefined) await contents.drop(machineId, content);
      }
    },
  };
}

/** Places of each service apart; throws RATE_LIMITED while all are taken. */
function createPlaces(most: number): { take(serviceId: string): () => void } {
  const taken = new Map<string, number>();
  return {
    take(serviceId) {
      const before = taken.get(serviceId) ?? 0;
      if (before >= most)
        throw new HoldfastError("RATE_LIMITED", `${most} such requests of the service are at work.`, {
          retryAfterS: 1,
        });
      taken.set(serviceId, before + 1);
      return () => {
        const left = (taken.get(serviceId) ?? 1) - 1;
        if (left === 0) taken.delete(serviceId);
        else taken.set(serviceId, left);
      };
    },
  };
}

function errorOf({ code, message }: TaskFailure): HoldfastError {
  const key = failures.get(code);
  if (key === undefined) return unreachable("Its engine could not do it in time.");
  // The engine's words about a payload may hold some of it.
  const detail = key === "ENGINE_REFUSED" && code !== "engine_refused" ? "The database refused a payload." : message;
  return new HoldfastError(key, detail, key === "RATE_LIMITED" ? { retryAfterS: 1 } : {});
}

function unreachable(detail: string): HoldfastError {
  return new HoldfastError("MACHINE_UNREACHABLE", `The machine did not answer. ${detail}`);
}
