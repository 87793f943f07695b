import { setTimeout as delay } from "node:timers/promises";
import { status as Code } from "@grpc/grpc-js";
import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createTokenBuckets } from "@holdfast/common/token-bucket.ts";
import type { TaskProgress } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Session } from "../session/session.ts";
import type { DurableTasks } from "./durable-tasks.ts";
import { isOpen, type TaskObject } from "./task-object.ts";

export interface TaskDispatchDeps {
  readonly tasks: DurableTasks;
  readonly log: Log;
  /** The stream of a machine, if it is here and may be used. */
  readonly sessionOf: (machineId: string) => Session | undefined;
  readonly cut: (session: Session, code: Code, reason: string) => void;
}

/** Brings durable tasks to the agents whose streams are here, and their results to the store. */
export interface TaskDispatch {
  /** A stream is open: everything its machine has to do goes down it. */
  attach(session: Session): void;
  /** A stream that was kept is acted on again: what changed meanwhile goes down it. */
  resume(session: Session): void;
  changed(taskId: string, task: TaskObject | undefined): void;
  /** False for a task that is not an open one of the machine: then nothing is kept of it. */
  progress(session: Session, progress: TaskProgress): boolean;
  result(session: Session, result: TaskResult): Promise<void>;
  close(): void;
}

/** Quick tasks have ids of their own kind, so that their late results need no look at the store. */
export const quickPrefix = "quick-";

/** A task that ends within this time never shows as running: that saves a write. */
const startedAfterMs = 200;
const progressWriteMs = 2_000;
const retryMs = 500;
/** An agent that was away for long has results of tasks that are not kept any more. */
const unknownResults = { burst: 10_000, perSecond: 20 };

export function createTaskDispatch({ tasks, log, sessionOf, cut }: TaskDispatchDeps): TaskDispatch {
  const begun = new Set<string>();
  /** The agent's word is here and on its way to the store: neither deliver the task again nor cancel it. */
  const storing = new Map<string, Session>();
  const progressWrites = new Map<string, number>();
  const unknown = createTokenBuckets(unknownResults, () => performance.now());
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  async function deliver(session: Session, task: TaskObject): Promise<void> {
    const { id } = task.metadata;
    if (session.delivered.has(id)) return;
    session.delivered.set(id, { answered: false });
    try {
      const message = await tasks.message(task);
      const now = tasks.get(id);
      if (session.closed || now === undefined || !isOpen(now)) return;
      if (!session.send({ case: "task", value: message })) return;
      if (task.status.cancelRequestedAt !== null) session.send({ case: "cancelTask", value: { taskId: id } });
      if (now.status.state === "pending") noteBegun(id);
    } catch (error) {
      log.error("task not delivered", { task: id, machine: session.machineId, error });
      session.delivered.delete(id);
    }
  }

  function noteBegun(taskId: string): void {
    begun.add(taskId);
    timer ??= setTimeout(writeBegun, startedAfterMs).unref();
  }

  function writeBegun(): void {
    timer = undefined;
    const ids = [...begun];
    begun.clear();
    for (const id of ids) {
      const task = tasks.get(id);
      if (task?.status.state === "pending") {
        tasks
          .started(id)
          .catch((error: unknown) => log.warn("task start not stored", { task: id, error: String(error) }));
      }
    }
  }

  function attach(session: Session): void {
    for (const task of tasks.openOf(session.machineId)) inBackground(log, "delivery of a task", deliver(session, task));
    for (const id of session.hello?.openTasks ?? []) {
      const task = tasks.get(id);
      // The result that the journal keeps is on record, or the task is: only for a task that ended the journal may forget.
      if (task !== undefined && !isOpen(task)) session.send({ case: "resultAck", value: { taskId: id } });
    }
  }

  function foreign(session: Session): void {
    cut(session, Code.PERMISSION_DENIED, "a result for another machine's task");
  }

  function changed(taskId: string, task: TaskObject | undefined): void {
    if (task === undefined) {
      begun.delete(taskId);
      progressWrites.delete(taskId);
      return;
    }
    const session = sessionOf(task.spec.machineId);
    if (session === undefined) return;
    if (isOpen(task)) {
      const asked = task.status.cancelRequestedAt !== null && session.delivered.has(taskId);
      if (asked) session.send({ case: "cancelTask", value: { taskId } });
      else inBackground(log, "delivery of a task", deliver(session, task));
    } else {
      progressWrites.delete(taskId);
      // Ended without the agent's word: it need not go on.
      const delivered = session.delivered.delete(taskId);
      if (delivered && !storing.has(taskId)) session.send({ case: "cancelTask", value: { taskId } });
    }
  }

  return {
    attach,
    resume(session) {
      for (const id of session.delivered.keys()) changed(id, tasks.get(id));
      attach(session);
    },
    changed,
    progress(session, progress) {
      const { taskId } = progress;
      const task = tasks.get(taskId);
      if (task === undefined || task.spec.machineId !== session.machineId || !isOpen(task)) return false;
      const now = performance.now();
      if (now - (progressWrites.get(taskId) ?? -progressWriteMs) < progressWriteMs) return true;
      progressWrites.set(taskId, now);
      tasks
        .progressed(taskId, progress)
        .catch((error: unknown) => log.warn("task progress not stored", { task: taskId, error: String(error) }));
      return true;
    },
    async result(session, result) {
      const { taskId } = result;
      if (session.answer(result) || taskId.startsWith(quickPrefix)) {
        session.send({ case: "resultAck", value: { taskId } });
        return;
      }
      const task = tasks.get(taskId);
      if (task !== undefined && task.spec.machineId !== session.machineId) return foreign(session);
      // A look at the store each, and no agent has so many that the store has forgotten.
      if (task === undefined && !unknown.admits(session.machineId, 1))
        return cut(session, Code.RESOURCE_EXHAUSTED, "too many results of unknown tasks");
      // The same one again: its answer is under way.
      if (storing.get(taskId) === session) return;
      begun.delete(taskId);
      storing.set(taskId, session);
      while (!session.closed && !closed) {
        try {
          const outcome = await tasks.finish(taskId, session.machineId, result);
          if (outcome === "foreign") foreign(session);
          else session.send({ case: "resultAck", value: { taskId } });
          break;
        } catch (error) {
          log.warn("task result not stored", { task: taskId, machine: session.machineId, error: String(error) });
          await delay(retryMs, undefined, { ref: false });
        }
      }
      if (storing.get(taskId) === session) storing.delete(taskId);
    },
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}
