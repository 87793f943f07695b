import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type EngineQueueMessage,
  EngineQueueMessageSchema,
  type HeldMessage,
  type QueueAnswer,
  QueueAnswerSchema,
  type QueueClaim,
  type QueueLook,
  type QueueRequest,
  type QueueSettle,
  QueueVerb,
} from "@holdfast/proto/holdfast/agent/v1/queue_call_pb.ts";
import { EngineRefused } from "../../engine-errors.ts";
import type { Session } from "../session.ts";
import { type ClaimedMessage, claim } from "./consume.ts";
import { enqueue } from "./enqueue-task.ts";
import { type ListedMessage, listDead, peek } from "./look.ts";
import { ack, extend, type Held, nack, type Settled } from "./settle.ts";
import { putTask, type QueueTask, type QueueTaskKind, readTask } from "./task.ts";

const begun: readonly string[] = ["stats", "purge", "purge_dead", "redrive"] satisfies QueueTaskKind[];

/** Does what is asked of one queue, in a session of its database. */
export async function answerRequest(session: Session, { queue, request }: QueueRequest): Promise<QueueAnswer> {
  switch (request.case) {
    case "enqueue": {
      const { taskId, bodyHash, messages } = request.value;
      return taskAnswer(await enqueue(session, { taskId, queue, bodyHash, messages }));
    }
    case "claim":
      return messagesAnswer((await claimMessages(session, queue, request.value)).map(claimedMessage));
    case "settle":
      return settleAnswer(session, queue, request.value);
    case "look":
      return messagesAnswer(await look(session, queue, request.value));
    case "beginTask": {
      const { taskId: id, kind, bodyHash, ids } = request.value;
      if (!isBegun(kind)) throw new EngineRefused(`there is no task ${kind}`);
      const input = JSON.stringify({ ids: ids.map(String) });
      return taskAnswer(await putTask(session, { id, queue, kind, bodyHash, input }));
    }
    case "readTask":
      return taskAnswer(await readTask(session, { taskId: request.value.taskId }));
    case undefined:
      throw new EngineRefused("the request asks for nothing");
  }
}

function isBegun(kind: string): kind is QueueTaskKind {
  return begun.includes(kind);
}

function claimMessages(session: Session, queue: string, asked: QueueClaim): Promise<ClaimedMessage[]> {
  const { worker, max, visibilitySeconds, taskId, bodyHash } = asked;
  return claim(session, {
    queue,
    worker,
    max,
    ...(visibilitySeconds === 0 ? {} : { visibilitySeconds }),
    ...(taskId === "" ? {} : { task: { id: taskId, bodyHash } }),
  });
}

interface Placed extends Held {
  readonly place: number;
}

async function settleAnswer(session: Session, queue: string, { verb, held }: QueueSettle): Promise<QueueAnswer> {
  const { done, lost } = await settle(session, queue, verb, held);
  const placesOf = (some: readonly Placed[]) => some.map(({ place }) => place);
  const value = { done: placesOf(done), lost: placesOf(lost) };
  return create(QueueAnswerSchema, { answer: { case: "settled", value } });
}

function settle(
  session: Session,
  queue: string,
  verb: QueueVerb,
  messages: readonly HeldMessage[],
): Promise<Settled<Placed>> {
  const held = messages.map(({ id, worker, seconds, error, discard }, place) => ({
    place,
    id,
    worker,
    error,
    discard,
    delaySeconds: seconds,
    visibilitySeconds: seconds,
  }));
  switch (verb) {
    case QueueVerb.ACK:
      return ack(session, queue, held);
    case QueueVerb.NACK:
      return nack(session, queue, held);
    case QueueVerb.EXTEND:
      return extend(session, queue, held);
    default:
      throw new EngineRefused("the request says nothing of what becomes of the messages");
  }
}

async function look(session: Session, queue: string, asked: QueueLook): Promise<EngineQueueMessage[]> {
  const { dead, limit, afterId } = asked;
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

function messagesAnswer(messages: EngineQueueMessage[]): QueueAnswer {
  return create(QueueAnswerSchema, { answer: { case: "messages", value: { messages } } });
}

function taskAnswer(task: QueueTask | undefined): QueueAnswer {
  if (task === undefined) return create(QueueAnswerSchema, { answer: { case: "task", value: { exists: false } } });
  const { queue, kind, bodyHash, state, result = "", error = "", createdAt, updatedAt } = task;
  const times = { createdAt: timestampFromDate(createdAt), updatedAt: timestampFromDate(updatedAt) };
  const value = { exists: true, queue, kind, bodyHash, state, result, error, ...times };
  return create(QueueAnswerSchema, { answer: { case: "task", value } });
}
