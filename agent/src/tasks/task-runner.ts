import { create, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { createSemaphore } from "@holdfast/common/concurrency/semaphore.ts";
import type { Log } from "@holdfast/common/log.ts";
import {
  Lane as LaneName,
  type Task,
  TaskClass,
  type TaskResult,
  TaskResultSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { TaskJournal } from "../journal/journal.ts";
import { TaskFailed } from "../task-failed.ts";
import { changingKinds, type TaskContext, type TaskHandler, type TaskKind } from "./task-handler.ts";

/** Part of the context that all tasks share. */
export type SharedContext = Pick<TaskContext, "workload" | "upgrade" | "engine" | "channel">;

export interface TaskRunnerDeps {
  readonly journal: TaskJournal;
  readonly handlers: { readonly [K in TaskKind]: TaskHandler<K> };
  readonly shared: SharedContext;
  /** Sends to the connected controller. A durable result is sent again until it is acknowledged. */
  readonly sendResult: (result: TaskResult) => void;
  readonly sendProgress: (taskId: string, step: string, progressPct: number) => void;
  readonly now: () => number;
  readonly log: Log;
}

/**
 * Runs each delivered task once. Controllers deliver at least once, and the journal has the tasks that were started or
 * finished.
 */
export interface TaskRunner {
  accept(task: Task): void;
  cancel(taskId: string): void;
  acknowledged(taskId: string): void;
  /** Ids of the running tasks. */
  readonly running: readonly string[];
  /** Queues tasks from now on instead of starting them, and writes nothing for them. */
  pause(): void;
  /** Starts the queued tasks. */
  resume(): void;
}

interface InFlight {
  readonly cancel: AbortController;
  readonly done: Promise<void>;
  readonly isChange: boolean;
}

const maxTaskMs = 24 * 3_600_000;
/** Part of a task's time that is reserved for the work outside of the engine. */
const marginMs = 2_000;

export function createTaskRunner(deps: TaskRunnerDeps): TaskRunner {
  const { journal, handlers, shared, sendResult, sendProgress, now, log } = deps;
  const lanes = {
    control: createSemaphore(16),
    query: createSemaphore(8),
    bulk: createSemaphore(2),
    queue: createSemaphore(128),
  };
  const inFlight = new Map<string, InFlight>();
  let paused: { tasks: Task[]; acknowledged: string[] } | undefined;

  /** Throws for a task of an older term or generation. */
  async function admit(task: Task, kind: TaskKind): Promise<void> {
    const { ownerId, term, generation } = task;
    const highest = journal.terms.get(ownerId) ?? 0n;
    if (term < highest) throw new TaskFailed("stale_term", `Term ${term} is over: term ${highest} has started.`);
    await journal.raiseTerm(ownerId, term);
    const newest = journal.generation(ownerId, kind);
    if (generation < newest) {
      throw new TaskFailed("superseded", `Generation ${generation} is older than generation ${newest}.`);
    }
  }

  async function perform<K extends TaskKind>(kind: K, task: Task, signal: AbortSignal): Promise<TaskResult> {
    const handler: TaskHandler<K> = handlers[kind];
    const input = task.input.value as Parameters<TaskHandler<K>["run"]>[0];
    const context: TaskContext = {
      ...shared,
      taskId: task.id,
      ownerId: task.ownerId,
      term: task.term,
      signal,
      withinMs: Math.max(1_000, Math.min(deadlineOf(task) - now() - marginMs, maxTaskMs)),
      progress: (step, pct) => sendProgress(task.id, step, pct),
      withdraw,
      endChanges,
    };
    if (changingKinds.has(kind)) await refuseIfClosed();
    const wasStarted = journal.outcome(task.id) === "started";
    if (isDurable(task)) {
      const { id, ownerId, generation } = task;
      await journal.begin({ id, ownerId, kind, generation, deadlineAt: deadlineOf(task) });
    } else await journal.raiseGeneration(task.ownerId, kind, task.generation);
    const found = wasStarted ? await handler.inspect?.(input, context) : undefined;
    const output = found ?? (await unlessAborted(handler.run(input, context), signal));
    return create(TaskResultSchema, { taskId: task.id, output: { case: kind, value: output } as TaskResult["output"] });
  }

  async function run(task: Task, cancel: AbortController): Promise<TaskResult> {
    const kind = task.input.case;
    const remainingMs = deadlineOf(task) - now();
    const late = new TaskFailed("deadline_exceeded", "The task did not end before its deadline.", { retryable: true });
    const timer = setTimeout(() => cancel.abort(late), Math.max(0, Math.min(remainingMs, maxTaskMs)));
    try {
      if (remainingMs <= 0) throw late;
      if (kind === undefined)
        throw new TaskFailed(
          "not_supported",
          "This machine's agent does not support this kind of task. Upgrade the agent.",
        );
      await admit(task, kind);
      const result = await laneOf(task).run(() => perform(kind, task, cancel.signal), { signal: cancel.signal });
      if (task.lane !== LaneName.QUEUE) requireEncodable(result);
      return result;
    } catch (error) {
      const failed = TaskFailed.from(error, cancel.signal);
      log.info("task failed", { task: task.id, kind, code: failed.code, reason: failed.message });
      return create(TaskResultSchema, { taskId: task.id, failure: failed.failure });
    } finally {
      clearTimeout(timer);
    }
  }

  function deadlineOf({ deadline }: Task): number {
    return deadline === undefined ? now() + maxTaskMs : timestampMs(deadline);
  }

  function laneOf(task: Task) {
    if (task.lane === LaneName.BULK) return lanes.bulk;
    // Most queue calls wait for messages; those that work share few sessions.
    if (task.lane === LaneName.QUEUE) return lanes.queue;
    return task.lane === LaneName.QUERY ? lanes.query : lanes.control;
  }

  async function settle(task: Task, cancel: AbortController): Promise<void> {
    const result = await run(task, cancel);
    if (isDurable(task)) await journal.finish(result);
    sendResult(result);
  }

  /** Converts the deadline to the machine's own clock. */
  function withOwnDeadline(task: Task): Task {
    const { withinMs } = task;
    return withinMs === 0n ? task : { ...task, deadline: timestampFromMs(now() + Number(withinMs)), withinMs: 0n };
  }

  function accept(delivered: Task): void {
    const task = withOwnDeadline(delivered);
    if (paused !== undefined) {
      paused.tasks.push(task);
      return;
    }
    const recorded = journal.outcome(task.id);
    if (typeof recorded === "object") return sendResult(recorded);
    if (inFlight.has(task.id)) return;
    const cancel = new AbortController();
    const done = settle(task, cancel)
      // The journal could not be written: no result is sent, so the task is delivered again.
      .catch((error: unknown) => log.error("task result not stored", { task: task.id, error }))
      .finally(() => inFlight.delete(task.id));
    const isChange = task.input.case !== undefined && changingKinds.has(task.input.case);
    inFlight.set(task.id, { cancel, done, isChange });
  }

  function cancelTask(taskId: string): void {
    inFlight.get(taskId)?.cancel.abort(new TaskFailed("cancelled", "The task was canceled."));
  }

  /** Refuses a change that the final backup of a service in deletion might lack. */
  async function refuseIfClosed(): Promise<void> {
    // Without an engine the handler reports what it can do.
    const engine = await shared.engine().catch(() => undefined);
    if (engine?.instance.spec.closed === true)
      throw new TaskFailed("not_ready", "The service is being deleted.", { retryable: true });
  }

  /** Ends all changes. Changes that have not started are refused at their start. */
  async function endChanges(): Promise<void> {
    const changes = [...inFlight].filter(([, { isChange }]) => isChange);
    for (const [id] of changes) cancelTask(id);
    await Promise.all(changes.map(([, { done }]) => done));
  }

  async function withdraw(taskIds: readonly string[]): Promise<void> {
    for (const id of taskIds) {
      cancelTask(id);
      await inFlight.get(id)?.done;
      if (typeof journal.outcome(id) === "object") continue;
      const { failure } = new TaskFailed("cancelled", "The task was withdrawn.");
      await journal.finish(create(TaskResultSchema, { taskId: id, failure }));
    }
  }

  function acknowledged(taskId: string): void {
    if (paused !== undefined) {
      paused.acknowledged.push(taskId);
      return;
    }
    journal
      .remove(taskId)
      .catch((error: unknown) => log.error("task not removed from the journal", { task: taskId, error }));
  }

  return {
    accept,
    cancel(taskId) {
      if (paused !== undefined) paused.tasks = paused.tasks.filter(({ id }) => id !== taskId);
      cancelTask(taskId);
    },
    acknowledged,
    get running() {
      return [...inFlight.keys()];
    },
    pause() {
      paused ??= { tasks: [], acknowledged: [] };
    },
    resume() {
      const before = paused ?? { tasks: [], acknowledged: [] };
      paused = undefined;
      for (const taskId of before.acknowledged) acknowledged(taskId);
      for (const task of before.tasks) accept(task);
    },
  };
}

function isDurable(task: Task): boolean {
  return task.class === TaskClass.DURABLE;
}

/**
 * Throws for a result that protobuf cannot encode, such as one with a fraction in an integer: its encoding would fail
 * the stream and every other task on it. Not called for queue calls, which are many and whose values were decoded or
 * checked.
 */
function requireEncodable(result: TaskResult): void {
  toBinary(TaskResultSchema, result);
}

/** Rejects on abort even if a handler ignores its signal. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
