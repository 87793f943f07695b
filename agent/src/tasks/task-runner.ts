import { create } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { createLane } from "@holdfast/common/lane.ts";
import type { Log } from "@holdfast/common/log.ts";
import {
  Lane as LaneName,
  type Task,
  TaskClass,
  type TaskResult,
  TaskResultSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Journal } from "../journal/journal.ts";
import { TaskFailed } from "../task-failed.ts";
import { changingKinds, type TaskContext, type TaskHandler, type TaskKind } from "./task-handler.ts";

/** What the context of a task is made from, besides the task itself. */
export type TaskSurroundings = Pick<
  TaskContext,
  "supervisor" | "logs" | "upgrade" | "backups" | "quiet" | "engine" | "channel"
>;

export interface TaskRunnerDeps {
  readonly journal: Journal;
  readonly handlers: { readonly [K in TaskKind]: TaskHandler<K> };
  readonly surroundings: TaskSurroundings;
  /** To whichever controller is there; a durable result is sent again until it is acknowledged. */
  readonly sendResult: (result: TaskResult) => void;
  readonly sendProgress: (taskId: string, step: string, progressPct: number) => void;
  readonly now: () => number;
  readonly log: Log;
}

/** Takes what controllers deliver, at least once, and does each task once. */
export interface TaskRunner {
  accept(task: Task): void;
  cancel(taskId: string): void;
  acknowledged(taskId: string): void;
  /** Tasks that run now. */
  readonly running: readonly string[];
  /** From now on what comes waits, and nothing more is written for it. */
  hold(): void;
  /** What waits goes on. */
  release(): void;
}

interface UnderWay {
  readonly cancel: AbortController;
  readonly done: Promise<void>;
  readonly isChange: boolean;
}

const longestTaskMs = 24 * 3_600_000;
/** Of a task's time, for all that is not the engine's. */
const spareMs = 2_000;

export function createTaskRunner(deps: TaskRunnerDeps): TaskRunner {
  const { journal, handlers, surroundings, sendResult, sendProgress, now, log } = deps;
  const lanes = { control: createLane(16), query: createLane(8), bulk: createLane(2), queue: createLane(128) };
  const underWay = new Map<string, UnderWay>();
  let waiting: { tasks: Task[]; acknowledged: string[] } | undefined;

  /** Throws for a task of a past that is over. */
  async function admit(task: Task, kind: TaskKind): Promise<void> {
    const { ownerId, term, generation } = task;
    const highest = journal.terms.get(ownerId) ?? 0n;
    if (term < highest) throw new TaskFailed("stale_term", `term ${term} is over: ${highest} has begun`);
    await journal.raiseTerm(ownerId, term);
    const newest = journal.generation(ownerId, kind);
    if (generation < newest) {
      throw new TaskFailed("superseded", `generation ${generation} is older than ${newest}`);
    }
  }

  async function perform<K extends TaskKind>(kind: K, task: Task, signal: AbortSignal): Promise<TaskResult> {
    // oxlint-disable-next-line holdfast/own-keys -- the keys are closed: the kinds of the proto
    const handler: TaskHandler<K> = handlers[kind];
    const input = task.input.value as Parameters<TaskHandler<K>["run"]>[0];
    const context: TaskContext = {
      ...surroundings,
      taskId: task.id,
      ownerId: task.ownerId,
      term: task.term,
      signal,
      withinMs: Math.max(1_000, Math.min(deadlineOf(task) - now() - spareMs, longestTaskMs)),
      progress: (step, pct) => sendProgress(task.id, step, pct),
      withdraw,
      endChanges,
    };
    if (changingKinds.has(kind)) await refuseIfClosed();
    const wasBegun = journal.outcome(task.id) === "begun";
    if (isDurable(task)) {
      const { id, ownerId, generation } = task;
      await journal.begin({ id, ownerId, kind, generation, deadlineAt: deadlineOf(task) });
    } else await journal.raiseGeneration(task.ownerId, kind, task.generation);
    const found = wasBegun ? await handler.inspect?.(input, context) : undefined;
    const output = found ?? (await unlessAborted(handler.run(input, context), signal));
    return create(TaskResultSchema, { taskId: task.id, output: { case: kind, value: output } as TaskResult["output"] });
  }

  async function run(task: Task, cancel: AbortController): Promise<TaskResult> {
    const kind = task.input.case;
    const leftMs = deadlineOf(task) - now();
    const late = new TaskFailed("deadline_exceeded", "the task took longer than its deadline", { retryable: true });
    const timer = setTimeout(() => cancel.abort(late), Math.max(0, Math.min(leftMs, longestTaskMs)));
    try {
      if (leftMs <= 0) throw late;
      if (kind === undefined) throw new TaskFailed("not_supported", "this agent does not know the kind of the task");
      await admit(task, kind);
      return await laneOf(task).run(() => {
        cancel.signal.throwIfAborted();
        return perform(kind, task, cancel.signal);
      });
    } catch (error) {
      const failed = TaskFailed.from(error, cancel.signal);
      log.info("task failed", { task: task.id, kind, code: failed.code, reason: failed.message });
      return create(TaskResultSchema, { taskId: task.id, failure: failed.failure });
    } finally {
      clearTimeout(timer);
    }
  }

  function deadlineOf({ deadline }: Task): number {
    return deadline === undefined ? now() + longestTaskMs : timestampMs(deadline);
  }

  function laneOf(task: Task) {
    if (task.lane === LaneName.BULK) return lanes.bulk;
    // Most of them wait for messages; those that work take turns at few sessions.
    if (task.lane === LaneName.QUEUE) return lanes.queue;
    return task.lane === LaneName.QUERY ? lanes.query : lanes.control;
  }

  async function settle(task: Task, cancel: AbortController): Promise<void> {
    const result = await run(task, cancel);
    if (isDurable(task)) await journal.finish(result);
    sendResult(result);
  }

  /** Its deadline by the machine's own clock, whatever the controller's says. */
  function withOwnDeadline(task: Task): Task {
    const { withinMs } = task;
    return withinMs === 0n ? task : { ...task, deadline: timestampFromMs(now() + Number(withinMs)), withinMs: 0n };
  }

  function accept(given: Task): void {
    const task = withOwnDeadline(given);
    if (waiting !== undefined) {
      waiting.tasks.push(task);
      return;
    }
    const recorded = journal.outcome(task.id);
    if (typeof recorded === "object") return sendResult(recorded);
    if (underWay.has(task.id)) return;
    const cancel = new AbortController();
    const done = settle(task, cancel)
      // A journal that cannot be written: no result is told, so the task comes again.
      .catch((error: unknown) => log.error("task result not stored", { task: task.id, error }))
      .finally(() => underWay.delete(task.id));
    const isChange = task.input.case !== undefined && changingKinds.has(task.input.case);
    underWay.set(task.id, { cancel, done, isChange });
  }

  function stop(taskId: string): void {
    underWay.get(taskId)?.cancel.abort(new TaskFailed("cancelled", "the task was cancelled"));
  }

  /** What it would bring might not be in the final backup. */
  async function refuseIfClosed(): Promise<void> {
    // Without an engine the handler says what it can do.
    const engine = await surroundings.engine().catch(() => undefined);
    if (engine?.instance.spec.closed === true)
      throw new TaskFailed("not_ready", "The service is being deleted.", { retryable: true });
  }

  /** Each that has yet to begin is refused by then: it ends at once as well. */
  async function endChanges(): Promise<void> {
    const changes = [...underWay].filter(([, { isChange }]) => isChange);
    for (const [id] of changes) stop(id);
    await Promise.all(changes.map(([, { done }]) => done));
  }

  async function withdraw(taskIds: readonly string[]): Promise<void> {
    for (const id of taskIds) {
      stop(id);
      await underWay.get(id)?.done;
      if (typeof journal.outcome(id) === "object") continue;
      const { failure } = new TaskFailed("cancelled", "the task was withdrawn");
      await journal.finish(create(TaskResultSchema, { taskId: id, failure }));
    }
  }

  function acknowledged(taskId: string): void {
    if (waiting !== undefined) {
      waiting.acknowledged.push(taskId);
      return;
    }
    journal.forget(taskId).catch((error: unknown) => log.error("task not forgotten", { task: taskId, error }));
  }

  return {
    accept,
    cancel(taskId) {
      if (waiting !== undefined) waiting.tasks = waiting.tasks.filter(({ id }) => id !== taskId);
      stop(taskId);
    },
    acknowledged,
    get running() {
      return [...underWay.keys()];
    },
    hold() {
      waiting ??= { tasks: [], acknowledged: [] };
    },
    release() {
      const before = waiting ?? { tasks: [], acknowledged: [] };
      waiting = undefined;
      for (const taskId of before.acknowledged) acknowledged(taskId);
      for (const task of before.tasks) accept(task);
    },
  };
}

function isDurable(task: Task): boolean {
  return task.class === TaskClass.DURABLE;
}

/** A handler that does not listen to its signal holds nobody up. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
