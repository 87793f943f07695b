import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { next } from "@holdfast/common/machine.ts";
import type { TaskProgress } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import {
  type Task,
  TaskClass,
  type TaskResult,
  TaskResultSchema,
  TaskSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, newMetadata, type Stored } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import type { PayloadStore } from "../payload/payloads.ts";
import type { StoredMessages } from "./stored-messages.ts";
import { type TaskEvent, taskLifecycle } from "./task-lifecycle.ts";
import {
  failedResult,
  isOpen,
  sentNow,
  type StoredMessage,
  taskKind,
  taskMessage,
  type TaskObject,
  type TaskRequest,
} from "./task.ts";

export interface DurableTasksDeps {
  readonly store: Store;
  readonly tasks: Collection<TaskObject>;
  readonly messages: StoredMessages;
  readonly payloads: PayloadStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly retentionMs: number;
  /** Called when a task was created, changed or deleted by any controller. */
  readonly onChange: (taskId: string, task: TaskObject | undefined) => void;
}

/** The durable tasks in the store. Writes by this controller are visible before its watch reports them. */
export interface DurableTasks {
  /** Stores a task, unless one with its id exists. */
  submit(machineId: string, taskId: string, request: TaskRequest, signal?: AbortSignal): Promise<void>;
  get(taskId: string): TaskObject | undefined;
  /** The machine's pending and running tasks, oldest first. */
  openOf(machineId: string): TaskObject[];
  /** Ids of the machines that have open tasks. */
  machinesWithOpen(): IterableIterator<string>;
  /** The task's message for the agent, with the remaining time. */
  message(task: TaskObject): Promise<Task>;
  /** Stores that the task was delivered. */
  started(taskId: string): Promise<void>;
  /** Stores the progress of an open task. */
  progressed(taskId: string, progress: TaskProgress): Promise<void>;
  /** Stores a result of the machine's agent. Resolves to "foreign" if the task belongs to another machine. */
  finish(taskId: string, machineId: string, result: TaskResult): Promise<"stored" | "unknown" | "foreign">;
  /** Ends a task without a result of its agent. */
  end(taskId: string, event: TaskEvent, code: string, message: string, signal?: AbortSignal): Promise<void>;
  /** Cancels a pending task; for a running one, stores the request to cancel it, which its agent gets. */
  requestCancel(taskId: string, signal?: AbortSignal): Promise<void>;
  /** Fails tasks after their deadline. */
  expire(): Promise<void>;
  /** Deletes tasks that ended more than `retentionMs` ago, with their payloads. */
  sweep(): Promise<void>;
  close(): void;
}

export function createDurableTasks(deps: DurableTasksDeps): DurableTasks {
  const { store, tasks, messages, payloads, clock, log, retentionMs, onChange } = deps;
  const written = new Map<string, Stored<TaskObject>>();
  const open = new Map<string, Set<string>>();
  /** Messages of tasks that were submitted here, so that an immediate delivery need not unseal them. */
  const submitted = new WeakMap<TaskObject, Task>();

  const subscription = tasks.subscribe((taskId) => {
    const writtenTask = written.get(taskId);
    const cachedTask = tasks.get(taskId);
    if (writtenTask !== undefined && (cachedTask === undefined || cachedTask.modRevision >= writtenTask.modRevision))
      written.delete(taskId);
    notify(taskId);
  });
  for (const { object } of tasks.values()) index(object);

  function newest(taskId: string): Stored<TaskObject> | undefined {
    const cachedTask = tasks.get(taskId);
    const writtenTask = written.get(taskId);
    if (cachedTask === undefined || writtenTask === undefined) return writtenTask ?? cachedTask;
    return writtenTask.modRevision > cachedTask.modRevision ? writtenTask : cachedTask;
  }

  function notify(taskId: string): void {
    const task = newest(taskId)?.object;
    if (task !== undefined) index(task);
    else for (const ids of open.values()) ids.delete(taskId);
    onChange(taskId, task);
  }

  function index(task: TaskObject): void {
    const { id } = task.metadata;
    const { machineId } = task.spec;
    if (isOpen(task)) {
      const ids = open.get(machineId) ?? new Set();
      open.set(machineId, ids.add(id));
      return;
    }
    const ids = open.get(machineId);
    ids?.delete(id);
    if (ids?.size === 0) open.delete(machineId);
  }

  /**
   * Retries the change until its compare-and-set succeeds. Resolves to undefined if the task does not exist or `edit`
   * returns undefined.
   */
  async function change(
    taskId: string,
    edit: (task: TaskObject) => TaskObject | undefined,
    signal?: AbortSignal,
  ): Promise<TaskObject | undefined> {
    let before = newest(taskId) ?? (await tasks.getCurrent(taskId, signal));
    while (before !== undefined) {
      const after = edit(before.object);
      if (after === undefined) return undefined;
      const stamped = { ...after, metadata: { ...after.metadata, updatedAt: clock.now() } };
      if (await write(stamped, before.modRevision, signal)) return stamped;
      before = await tasks.getCurrent(taskId, signal);
    }
    return undefined;
  }

  async function write(
    task: TaskObject,
    modRevision: bigint,
    signal?: AbortSignal,
    onlyWhile?: TaskRequest["onlyWhile"],
  ): Promise<boolean> {
    const { id } = task.metadata;
    const key = keyOf(taskKind, id);
    const conditions = [{ key, modRevision }, ...(onlyWhile === undefined ? [] : [onlyWhile])];
    const done = await store.commit({ conditions, puts: [{ key, value: JSON.stringify(task) }], deletes: [] }, signal);
    if (!done.committed) return false;
    const cached = tasks.get(id);
    if (cached === undefined || cached.modRevision < done.revision) {
      written.set(id, { object: task, modRevision: done.revision });
      notify(id);
    }
    return true;
  }

  function withEvent(task: TaskObject, event: TaskEvent, result: StoredMessage): TaskObject | undefined {
    const row = next(taskLifecycle, task.status.state, event);
    if (row === undefined) return undefined;
    return { ...task, status: { ...task.status, state: row[2], result, finishedAt: clock.now() } };
  }

  async function end(taskId: string, event: TaskEvent, code: string, message: string, signal?: AbortSignal) {
    const machineId = newest(taskId)?.object.spec.machineId ?? "";
    const result = failedResult(taskId, code, message);
    const stored = await messages.store(TaskResultSchema, result, keyOf(taskKind, taskId), machineId);
    const after = await change(taskId, (task) => withEvent(task, event, stored), signal);
    if (after !== undefined) log.info("task ended", { task: taskId, machine: machineId, event, code });
  }

  return {
    async submit(machineId, taskId, request, signal) {
      if (newest(taskId) !== undefined) return;
      const now = clock.now();
      const deadlineAt = now + request.deadlineMs;
      const message = taskMessage(taskId, request, deadlineAt, TaskClass.DURABLE);
      const { ownerId, generation, term, lane, input } = request;
      const task: TaskObject = {
        metadata: newMetadata(taskId, now),
        spec: {
          machineId,
          kind: input.case ?? "",
          ownerId,
          generation,
          term,
          lane,
          deadlineAt,
          task: await messages.store(TaskSchema, message, keyOf(taskKind, taskId), machineId),
        },
        status: { state: "pending", progress: null, result: null, finishedAt: null, cancelRequestedAt: null },
      };
      submitted.set(task, message);
      const isNew = await write(task, 0n, signal, request.onlyWhile);
      const stored = task.spec.task;
      if (!isNew && "payloadId" in stored) await payloads.remove(machineId, stored.payloadId, signal);
    },
    get: (taskId) => newest(taskId)?.object,
    openOf(machineId) {
      const found = [...(open.get(machineId) ?? [])].map((id) => newest(id)?.object);
      return found.filter((task): task is TaskObject => task !== undefined && isOpen(task)).sort(byAge);
    },
    machinesWithOpen: () => open.keys(),
    async message(task) {
      const { metadata, spec } = task;
      const unsealed = submitted.get(task);
      const message =
        unsealed ?? (await messages.load(TaskSchema, spec.task, keyOf(taskKind, metadata.id), spec.machineId));
      return sentNow(message, clock.now());
    },
    async started(taskId) {
      await change(taskId, (task) => {
        const row = next(taskLifecycle, task.status.state, "delivered");
        return row && { ...task, status: { ...task.status, state: row[2] } };
      });
    },
    async progressed(taskId, { step, progressPct }) {
      await change(taskId, (task) =>
        isOpen(task)
          ? { ...task, status: { ...task.status, state: "running", progress: { step, progressPct } } }
          : undefined,
      );
    },
    async finish(taskId, machineId, result) {
      const task = newest(taskId)?.object ?? (await tasks.getCurrent(taskId))?.object;
      if (task === undefined) return "unknown";
      if (task.spec.machineId !== machineId) return "foreign";
      if (!isOpen(task)) return "stored";
      const stored = await messages.store(TaskResultSchema, result, keyOf(taskKind, taskId), machineId);
      await change(taskId, (now) => withEvent(now, result.failure === undefined ? "succeeded" : "failed", stored));
      return "stored";
    },
    end,
    async requestCancel(taskId, signal) {
      await end(taskId, "cancelled", "cancelled", "The task was canceled.", signal);
      await change(
        taskId,
        (task) =>
          isOpen(task) && task.status.cancelRequestedAt === null
            ? { ...task, status: { ...task.status, cancelRequestedAt: clock.now() } }
            : undefined,
        signal,
      );
    },
    async expire() {
      const now = clock.now();
      for (const ids of open.values()) {
        for (const id of ids) {
          const task = newest(id)?.object;
          if (task === undefined || !isOpen(task) || task.spec.deadlineAt > now) continue;
          await end(id, "deadlinePassed", "deadline_passed", "The task did not end before its deadline.");
        }
      }
    },
    async sweep() {
      const before = clock.now() - retentionMs;
      for (const { object: task, modRevision } of tasks.values()) {
        const { finishedAt, result } = task.status;
        if (finishedAt === null || finishedAt >= before) continue;
        const key = keyOf(taskKind, task.metadata.id);
        await store.commit({ conditions: [{ key, modRevision }], puts: [], deletes: [key] });
        for (const message of [task.spec.task, result]) {
          if (message !== null && "payloadId" in message) await payloads.remove(task.spec.machineId, message.payloadId);
        }
      }
      await payloads.sweep(before - 3_600_000);
    },
    close: () => subscription.close(),
  };
}

function byAge(a: TaskObject, b: TaskObject): number {
  if (a.metadata.createdAt !== b.metadata.createdAt) return a.metadata.createdAt - b.metadata.createdAt;
  return a.metadata.id < b.metadata.id ? -1 : 1;
}
