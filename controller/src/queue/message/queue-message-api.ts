import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Call, Handlers } from "@holdfast/common/call.ts";
import { invalid } from "@holdfast/common/errors.ts";
import {
  type EngineQueueMessage,
  LeasedMessageSchema,
  QueueVerb,
} from "@holdfast/proto/holdfast/agent/v1/queue_call_pb.ts";
import {
  MessageState,
  type QueueService,
  type QueueTask,
  QueueTaskSchema,
  ReceiptsResponseSchema,
} from "@holdfast/proto/holdfast/v1/queue_pb.ts";
import { auditOf } from "#access/caller.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { AuditedActs } from "#kernel/outbox/audited-acts.ts";
import type { AsynchronousTasks } from "#operation/task/asynchronous-tasks.ts";
import type { FoundQueue, QueueAccess } from "../queue-access.ts";
import type { Enqueue } from "./enqueue.ts";
import type { PayloadChecks } from "./payload-checks.ts";
import type { QueueCalls } from "./queue-calls.ts";
import type { QueueTaskName, QueueTasks } from "./queue-tasks.ts";
import type { Receipts } from "./receipts.ts";

export interface QueueMessageDeps {
  readonly access: QueueAccess;
  readonly calls: QueueCalls;
  readonly queueTasks: QueueTasks;
  readonly receipts: Receipts;
  readonly enqueue: Enqueue;
  readonly payloads: Pick<PayloadChecks, "refuseLarge">;
  readonly asynchronous: AsynchronousTasks;
  readonly cursors: Cursors;
  readonly auditedActs: Pick<AuditedActs, "act">;
}

type Messages = Omit<
  Handlers<typeof QueueService>,
  "createQueue" | "listQueues" | "getQueue" | "updateQueue" | "deleteQueue"
>;

/** The RPCs of messages. Each is one request to the database of the service; the controller does not store messages. */
export function queueMessages(deps: QueueMessageDeps): Messages {
  const { access, calls, queueTasks, receipts, asynchronous, cursors } = deps;

  const objectsOf = ({ service, queue }: FoundQueue) => ({ service: service.object, queue: queue.object });

  async function startTask(
    kind: Exclude<QueueTaskName, "enqueue">,
    { serviceId, name }: { readonly serviceId: string; readonly name: string },
    call: Call,
    ids: bigint[] = [],
  ): Promise<QueueTask> {
    const found = objectsOf(access.active(serviceId, name, call));
    const { key, bodyHash } = queueTasks.keyOf(kind, call);
    const request = { case: "beginTask", value: { taskId: key, kind, bodyHash, ids } } as const;
    const begin = () => calls.call(found, request, "task", { signal: call.signal });
    const entry = auditOf(call, `queue.${kind.replace("_", "-")}`, "managed-service", serviceId, name);
    await (kind === "stats" ? begin() : deps.auditedActs.act(entry, begin));
    return create(QueueTaskSchema, { taskId: queueTasks.idOf(kind, key, found.queue, call) });
  }

  async function settle(
    {
      serviceId,
      name,
      messages,
    }: { serviceId: string; name: string; messages: readonly { readonly receipt: string }[] },
    verb: QueueVerb,
    leaseOf: (index: number, found: FoundQueue) => Omit<MessageInitShape<typeof LeasedMessageSchema>, "$typeName">,
    call: Call,
  ) {
    const found = access.active(serviceId, name, call);
    const requested = messages.map(({ receipt }, index) => ({
      receipt,
      index,
      opened: receipts.open(found.queue.object, receipt),
    }));
    const faults = requested.flatMap(({ opened, index }) =>
      opened === undefined
        ? [{ field: `messages[${index}].receipt`, code: "invalid_receipt", detail: "is not a receipt of this queue" }]
        : [],
    );
    if (faults.length > 0) throw invalid(...faults);
    const leased = requested.map(({ opened, index }) =>
      create(LeasedMessageSchema, { ...opened, ...leaseOf(index, found) }),
    );
    const request = { case: "settle", value: { verb, leased } } as const;
    const { done, lost } = await calls.call(objectsOf(found), request, "settled", { signal: call.signal });
    const receiptAt = (index: number) => requested[index]?.receipt ?? "";
    return create(ReceiptsResponseSchema, { done: done.map(receiptAt), lost: lost.map(receiptAt) });
  }

  async function peek(
    request: { serviceId: string; name: string; limit?: number | undefined; cursor?: string | undefined },
    dead: boolean,
    call: Call,
  ): Promise<{ messages: EngineQueueMessage[]; nextCursor?: string }> {
    const { serviceId, name } = request;
    const found = objectsOf(access.active(serviceId, name, call));
    const list = `queue ${dead ? "dead " : ""}${serviceId}`;
    const page = cursors.open(call, list, found.queue.spec.queueId, request);
    const value = { dead, limit: page.limit, afterId: BigInt(page.after ?? 0) };
    const { messages } = await calls.call(found, { case: "listMessages", value }, "messages", { signal: call.signal });
    // A page may be short because of its size in bytes, so only an empty page is the last.
    const last = messages.at(-1)?.id;
    return { messages, ...page.next(last === undefined ? undefined : String(last)) };
  }

  return {
    async enqueueMessages(request, call) {
      const { serviceId, name } = request;
      const find = () => objectsOf(access.active(serviceId, name, call));
      const { queue } = find();
      await deps.payloads.refuseLarge(request);
      const { key: taskId, bodyHash } = queueTasks.keyOf("enqueue", call);
      const messages = request.messages.map(({ payload, delaySeconds = 0 }) => ({ payload, delaySeconds }));
      const isKeyed = call.idempotency !== undefined;
      // With an Idempotency-Key the request continues after the caller disconnects, and a retry gets its outcome.
      const signal = isKeyed ? new AbortController().signal : call.signal;
      await deps.enqueue(find, { taskId, bodyHash, messages, isKeyed }, signal);
      return create(QueueTaskSchema, { taskId: queueTasks.idOf("enqueue", taskId, queue, call) });
    },

    async listMessages(request, call) {
      const { serviceId, name, taskId } = request;
      if (taskId !== undefined) {
        const { queue } = objectsOf(access.queue(serviceId, name, call));
        const names: QueueTaskName[] = ["enqueue", "purge", "purge_dead", "redrive"];
        const task = await asynchronous.get(taskId, call, (ref) => queueTasks.isOf(queue, ref, names));
        const { status, result, error } = task;
        return { taskId, status, ...(result && { result }), ...(error && { error }) };
      }
      const { messages, ...next } = await peek(request, false, call);
      return {
        messages: messages.map((message) => ({ ...commonOf(message), state: stateOf(message) })),
        ...next,
      };
    },

    countMessages: (request, call) => startTask("stats", request, call),
    getMessageCounts({ serviceId, name, taskId }, call) {
      const { queue } = objectsOf(access.queue(serviceId, name, call));
      return asynchronous.get(taskId, call, (ref) => queueTasks.isOf(queue, ref, ["stats"]));
    },

    async claimMessages({ serviceId, name, max = 1, visibilityTimeoutSeconds = 0, waitSeconds = 0 }, call) {
      const found = objectsOf(access.active(serviceId, name, call));
      const { key, bodyHash } = queueTasks.keyOf("claim", call);
      const worker = `http-${key}`;
      const value = {
        worker,
        max,
        visibilitySeconds: visibilityTimeoutSeconds,
        waitSeconds,
        ...(call.idempotency === undefined ? {} : { taskId: key, bodyHash }),
      };
      const options = { signal: call.signal, waitMs: waitSeconds * 1_000 };
      const { messages } = await calls.call(found, { case: "claim", value }, "messages", options);
      return {
        messages: messages.map((message) => ({
          ...commonOf(message),
          receipt: receipts.seal(found.queue, { id: message.id, worker }),
        })),
      };
    },

    ackMessages: (request, call) => settle(request, QueueVerb.ACK, () => ({}), call),
    nackMessages: (request, call) =>
      settle(
        request,
        QueueVerb.NACK,
        (index) => {
          const { delaySeconds = 0, error, discard = false } = request.messages[index] ?? {};
          return { seconds: delaySeconds, discard, ...(error === undefined ? {} : { error }) };
        },
        call,
      ),
    extendMessages: (request, call) =>
      settle(
        request,
        QueueVerb.EXTEND,
        (index, { queue }) => ({
          seconds: request.messages[index]?.visibilityTimeoutSeconds ?? queue.object.spec.visibilityTimeoutSeconds,
        }),
        call,
      ),

    async listDeadMessages(request, call) {
      const { messages, ...next } = await peek(request, true, call);
      return {
        messages: messages.map(({ diedAt, ...message }) => ({ ...commonOf(message), ...(diedAt && { diedAt }) })),
        ...next,
      };
    },
    purgeDeadMessages: (request, call) => startTask("purge_dead", request, call),
    redriveMessages: (request, call) => startTask("redrive", request, call, request.ids),
    purgeMessages: (request, call) => startTask("purge", request, call),
  };
}

function commonOf(message: Omit<EngineQueueMessage, "diedAt">) {
  const { id, payload, attemptCount, maxAttempts, enqueuedAt, visibleAt, lastError } = message;
  return {
    id,
    payload: Buffer.from(payload, "utf8"),
    attemptCount,
    maxAttempts,
    ...(enqueuedAt && { enqueuedAt }),
    ...(visibleAt && { visibleAt }),
    ...(lastError === undefined ? {} : { lastError }),
  };
}

function stateOf({ visible, claimed, attemptCount, maxAttempts }: EngineQueueMessage): MessageState {
  if (!visible) return claimed ? MessageState.INFLIGHT : MessageState.DELAYED;
  return attemptCount < maxAttempts ? MessageState.READY : MessageState.EXHAUSTED;
}
