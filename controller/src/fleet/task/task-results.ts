import { create } from "@bufbuild/protobuf";
import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";
import { type TaskProgress, TaskProgressSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { type TaskResult, TaskResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { keyOf } from "#kernel/store/resource.ts";
import type { StoredMessages } from "./stored-messages.ts";
import { taskKind, type TaskObject, type TaskState } from "./task.ts";

/** States of durable tasks for other groups, with unsealed results and the newest progress. */
export interface TaskResults {
  /** State of a task. A task whose result is in the object store is running until the result is loaded. */
  stateOf(task: TaskObject): TaskState;
  /** Records progress that is newer than the stored one. */
  progressed(progress: TaskProgress): void;
  remove(taskId: string): void;
}

export function createTaskResults(
  messages: StoredMessages,
  log: Log,
  onLoaded: (task: TaskObject) => void,
): TaskResults {
  const opened = new WeakMap<TaskObject, TaskResult>();
  const loading = new WeakSet<TaskObject>();
  const latest = new Map<string, TaskProgress>();

  function resultOf(task: TaskObject): TaskResult | undefined {
    const { result } = task.status;
    if (result === null) return undefined;
    const cached = opened.get(task) ?? messages.inline(TaskResultSchema, result, keyOf(taskKind, task.metadata.id));
    if (cached !== undefined) opened.set(task, cached);
    else if (!loading.has(task)) inBackground(log, "task result", load(task));
    return cached;
  }

  async function load(task: TaskObject): Promise<void> {
    const { result } = task.status;
    if (result === null) return;
    loading.add(task);
    try {
      const key = keyOf(taskKind, task.metadata.id);
      opened.set(task, await messages.load(TaskResultSchema, result, key, task.spec.machineId));
      onLoaded(task);
    } catch (error) {
      log.error("task result not read", { task: task.metadata.id, error });
      loading.delete(task);
    }
  }

  return {
    stateOf(task) {
      const result = resultOf(task);
      const { state, progress: stored } = task.status;
      const progress =
        latest.get(task.metadata.id) ??
        (stored === null ? undefined : create(TaskProgressSchema, { taskId: task.metadata.id, ...stored }));
      const ended = state === "completed" || state === "failed";
      return { status: ended && result === undefined ? "running" : state, progress, result };
    },
    progressed: (progress) => {
      latest.set(progress.taskId, progress);
    },
    remove: (taskId) => {
      latest.delete(taskId);
    },
  };
}
