import { setTimeout as delay } from "node:timers/promises";
import { status as Code } from "@grpc/grpc-js";
import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createTokenBuckets } from "@holdfast/common/concurrency/token-buckets.ts";
import type { TaskProgress } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { AgentSession } from "../session/session.ts";
import type { DurableTasks } from "./durable-tasks.ts";
import { isOpen, type TaskObject } from "./task.ts";

export interface TaskDispatchDeps {
  readonly tasks: DurableTasks;
  readonly log: Log;
  /** The machine's stream, if this controller has it and may act on it. */
  readonly sessionOf: (machineId: string) => AgentSession | undefined;
  readonly cut: (session: AgentSession, code: Code, reason: string) => void;
}

/**
 * Delivers durable tasks on the streams here, and stores their results. A result is acknowledged after it is stored;
 * until then the agent's journal retains it.
 */
export interface TaskDispatch {
  /** Delivers all open tasks of the machine on its new stream. */
  attach(session: AgentSession): void;
  /** Delivers on a reclaimed stream the changes since the lease was lost. */
  resume(session: AgentSession): void;
  changed(taskId: string, task: TaskObject | undefined): void;
  /** Stores progress. Returns false, and stores nothing, unless the task is an open one of the machine. */
  progress(session: AgentSession, progress: TaskProgress): boolean;
  result(session: AgentSession, result: TaskResult): Promise<void>;
  close(): void;
}

/** Prefix of quick tasks' ids, so that late results of them are recognized without a read of the store. */
export const quickPrefix = "quick-";

/** Delay before a task is stored as running. A task that ends earlier is never stored so, which saves a write. */
const startStoreDelayMs = 200;
const progressWriteIntervalMs = 2_000;
const retryDelayMs = 500;
/** Rate of results of deleted tasks. An agent that was disconnected for over a day may have such results. */
const unknownResults = { burst: 10_000, perSecond: 20 };

export function createTaskDispatch({ tasks, log, sessionOf, cut }: TaskDispatchDeps): TaskDispatch {
  const unstoredStarts = new Set<string>();
  /**
   * Tasks whose results are being stored, with the stream of the result. They are neither delivered again nor canceled.
   */
  const storing = new Map<string, AgentSession>();
  const progressWrites = new Map<string, number>();
  const unknown = createTokenBuckets(unknownResults, () => performance.now());
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  async function deliver(session: AgentSession, task: TaskObject): Promise<void> {
    const { id } = task.metadata;
    if (session.delivered.has(id)) return;
    session.delivered.set(id, { hasResult: false });
    try {
      const message = await tasks.message(task);
      const now = tasks.get(id);
      if (session.closed || now === undefined || !isOpen(now)) return;
      if (!session.send({ case: "task", value: message })) return;
      if (task.status.cancelRequestedAt !== null) session.send({ case: "cancelTask", value: { taskId: id } });
      if (now.status.state === "pending") storeStartSoon(id);
    } catch (error) {
      log.error("task not delivered", { task: id, machine: session.machineId, error });
      session.delivered.delete(id);
    }
  }

  function storeStartSoon(taskId: string): void {
    unstoredStarts.add(taskId);
    timer ??= setTimeout(storeStarts, startStoreDelayMs).unref();
  }

  function storeStarts(): void {
    timer = undefined;
    const ids = [...unstoredStarts];
    unstoredStarts.clear();
    for (const id of ids) {
      const task = tasks.get(id);
      if (task?.status.state === "pending") {
        tasks
          .started(id)
          .catch((error: unknown) => log.warn("task start not stored", { task: id, error: String(error) }));
      }
    }
  }

  function attach(session: AgentSession): void {
    for (const task of tasks.openOf(session.machineId)) inBackground(log, "task delivery", deliver(session, task));
    for (const id of session.hello?.openTasks ?? []) {
      const task = tasks.get(id);
      // The agent's journal may delete a result only after its task has ended in the store.
      if (task !== undefined && !isOpen(task)) session.send({ case: "resultAck", value: { taskId: id } });
    }
  }

  function cutForeign(session: AgentSession): void {
    cut(session, Code.PERMISSION_DENIED, "a result for another machine's task");
  }

  function changed(taskId: string, task: TaskObject | undefined): void {
    if (task === undefined) {
      unstoredStarts.delete(taskId);
      progressWrites.delete(taskId);
      return;
    }
    const session = sessionOf(task.spec.machineId);
    if (session === undefined) return;
    if (isOpen(task)) {
      const isCancelRequested = task.status.cancelRequestedAt !== null && session.delivered.has(taskId);
      if (isCancelRequested) session.send({ case: "cancelTask", value: { taskId } });
      else inBackground(log, "task delivery", deliver(session, task));
    } else {
      progressWrites.delete(taskId);
      // The task ended without a result of the agent, so the agent is to stop it.
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
      if (now - (progressWrites.get(taskId) ?? -progressWriteIntervalMs) < progressWriteIntervalMs) return true;
      progressWrites.set(taskId, now);
      tasks
        .progressed(taskId, progress)
        .catch((error: unknown) => log.warn("task progress not stored", { task: taskId, error: String(error) }));
      return true;
    },
    async result(session, result) {
      const { taskId } = result;
      if (session.deliverResult(result) || taskId.startsWith(quickPrefix)) {
        session.send({ case: "resultAck", value: { taskId } });
        return;
      }
      const task = tasks.get(taskId);
      if (task !== undefined && task.spec.machineId !== session.machineId) return cutForeign(session);
      // Each result needs a read of the store, and no correct agent has that many results of deleted tasks.
      if (task === undefined && !unknown.admits(session.machineId, 1))
        return cut(session, Code.RESOURCE_EXHAUSTED, "too many results of unknown tasks");
      // A repeated result: it is acknowledged when the first one is stored.
      if (storing.get(taskId) === session) return;
      unstoredStarts.delete(taskId);
      storing.set(taskId, session);
      while (!session.closed && !closed) {
        try {
          const outcome = await tasks.finish(taskId, session.machineId, result);
          if (outcome === "foreign") cutForeign(session);
          else session.send({ case: "resultAck", value: { taskId } });
          break;
        } catch (error) {
          log.warn("task result not stored", { task: taskId, machine: session.machineId, error: String(error) });
          await delay(retryDelayMs, undefined, { ref: false });
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
