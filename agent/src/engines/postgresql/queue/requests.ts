import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type EngineQueueMessage,
  EngineQueueMessageSchema,
  type LeasedMessage,
  type QueueResponse,
  QueueResponseSchema,
  type QueueClaim,
  type QueueListMessages,
  type QueueRequest,
  type QueueSettle,
  QueueVerb,
} from "@holdfast/proto/holdfast/agent/v1/queue_call_pb.ts";
import { EngineRefused } from "../../engine-errors.ts";
import type { Session } from "../session.ts";
import { type ClaimedMessage, claim } from "./claim.ts";
import { enqueue } from "./enqueue.ts";
import { type ListedMessage, listDead, peek } from "./peek.ts";
import { ack, extend, type MessageClaim, nack, type Settled } from "./settle.ts";
import { putTask, type QueueTask, type QueueTaskKind, readTask } from "./task.ts";

const startableKinds: readonly string[] = ["stats", "purge", "purge_dead", "redrive"] satisfies QueueTaskKind[];

/** Runs one request on a queue, in a session of its database. */
export async function runRequest(session: Session, { queue, request }: QueueRequest): Promise<QueueResponse> {
  switch (request.case) {
    case "enqueue": {
      const { taskId, bodyHash, messages } = request.value;
      return taskResponse(await enqueue(session, { taskId, queue, bodyHash, messages }));
    }
    case "claim":
      return messagesResponse((await claimMessages(session, queue, request.value)).map(claimedMessage));
    case "settle":
      return settleResponse(session, queue, request.value);
    case "listMessages":
      return messagesResponse(await listMessages(session, queue, request.value));
    case "beginTask": {
      const { taskId: id, kind, bodyHash, ids } = request.value;
      if (!isStartable(kind)) throw new EngineRefused(`There is no kind of task ${kind}.`);
      const input = JSON.stringify({ ids: ids.map(String) });
      return taskResponse(await putTask(session, { id, queue, kind, bodyHash, input }));
    }
    case "readTask":
      return taskResponse(await readTask(session, { taskId: request.value.taskId }));
    case undefined:
      throw new EngineRefused("The request is empty.");
  }
}

function isStartable(kind: string): kind is QueueTaskKind {
  return startableKinds.includes(kind);
}

function claimMessages(session: Session, queue: string, request: QueueClaim): Promise<ClaimedMessage[]> {
  const { worker, max, visibilitySeconds, taskId, bodyHash } = request;
  return claim(session, {
    queue,
    worker,
    max,
    ...(visibilitySeconds === 0 ? {} : { visibilitySeconds }),
    ...(taskId === "" ? {} : { task: { id: taskId, bodyHash } }),
  });
}

interface IndexedClaim extends MessageClaim {
  readonly index: number;
}

async function settleResponse(
  session: Session,
  queue: string,
  { verb, leased: messages }: QueueSettle,
): Promise<QueueResponse> {
  const { done, lost } = await settle(session, queue, verb, messages);
  const indexesOf = (list: readonly IndexedClaim[]) => list.map(({ index }) => index);
  const value = { done: indexesOf(done), lost: indexesOf(lost) };
  return create(QueueResponseSchema, { response: { case: "settled", value } });
}

function settle(
  session: Session,
  queue: string,
  verb: QueueVerb,
  messages: readonly LeasedMessage[],
): Promise<Settled<IndexedClaim>> {
  const claims = messages.map(({ id, worker, seconds, error, discard }, index) => ({
    index,
    id,
    worker,
    error,
    discard,
    delaySeconds: seconds,
    visibilitySeconds: seconds,
  }));
  switch (verb) {
    case QueueVerb.ACK:
      return ack(session, queue, claims);
    case QueueVerb.NACK:
      return nack(session, queue, claims);
    case QueueVerb.EXTEND:
      return extend(session, queue, claims);
    default:
      throw new EngineRefused("The request has no verb.");
  }
}

async function listMessages(
  session: Session,
  queue: string,
  request: QueueListMessages,
): Promise<EngineQueueMessage[]> {
  const { dead, limit, afterId } = request;
  const listed = await (dead ? listDead : peek)(session, { queue, limit, afterId });
  const [clock] = await session.rows<{ at: Date }>("SELECT clock_timestamp() AS at");
  return listed.map((message) => listedMessage(message, clock?.at ?? new Date()));
}

function claimedMessage({ id, payload, attemptCount, enqueuedAt, visibleAt }: ClaimedMessage): EngineQueueMessage {
  return create(EngineQueueMessageSchema, {
    id,
    payload,
    attemptCount,
    enqueuedAt: timestampFromDate(enqueuedAt),
    visibleAt: timestampFromDate(visibleAt),
    claimed: true,
  });
}

function listedMessage(message: ListedMessage, now: Date): EngineQueueMessage {
  const { id, payload, attemptCount, maxAttempts, enqueuedAt, visibleAt, claimedBy, lastError, diedAt } = message;
  return create(EngineQueueMessageSchema, {
    id,
    payload,
    attemptCount,
    maxAttempts,
    enqueuedAt: timestampFromDate(enqueuedAt),
    visibleAt: timestampFromDate(visibleAt),
    claimed: claimedBy !== undefined,
    visible: visibleAt <= now,
    ...(lastError === undefined ? {} : { lastError }),
    ...(diedAt === undefined ? {} : { diedAt: timestampFromDate(diedAt) }),
  });
}

function messagesResponse(messages: EngineQueueMessage[]): QueueResponse {
  return create(QueueResponseSchema, { response: { case: "messages", value: { messages } } });
}

function taskResponse(task: QueueTask | undefined): QueueResponse {
  if (task === undefined) return create(QueueResponseSchema, { response: { case: "task", value: { exists: false } } });
  const { queue, kind, bodyHash, state, result = "", error = "", createdAt, updatedAt } = task;
  const times = { createdAt: timestampFromDate(createdAt), updatedAt: timestampFromDate(updatedAt) };
  const value = { exists: true, queue, kind, bodyHash, state, result, error, ...times };
  return create(QueueResponseSchema, { response: { case: "task", value } });
}
