import { HoldfastError } from "@holdfast/common/errors.ts";
import { createSemaphore, type Semaphore } from "@holdfast/common/semaphore.ts";
import type { Task, TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { TaskNotSent } from "../task-not-sent.ts";
import type { Session } from "../session/session.ts";

export interface QuickTasksDeps {
  /** Tasks of one machine and lane: sent and unanswered, and waiting to be sent. */
  readonly limits: { readonly atOnce: number; readonly queued: number };
  /** The machine's stream, if this controller has it and may act on it. */
  readonly sessionOf: (machineId: string) => Session | undefined;
}

/**
 * Runs quick tasks on the streams here. The controller limits an agent's concurrent tasks: tasks over `atOnce` wait in
 * order, and tasks over `queued` waiting ones are refused.
 */
export interface QuickTasks {
  /**
   * Throws MACHINE_UNREACHABLE if the stream breaks or the result does not arrive in time (as TaskNotSent if the stream
   * is elsewhere or the task was not sent in time), and RATE_LIMITED if too many tasks wait.
   */
  run(machineId: string, task: Task, timeoutMs: number, signal?: AbortSignal): Promise<TaskResult>;
}

export function createQuickTasks({ limits, sessionOf }: QuickTasksDeps): QuickTasks {
  const lanes = new Map<string, { readonly lane: Semaphore; tasks: number }>();

  async function runInLane(lane: Semaphore, machineId: string, task: Task, timeoutMs: number, signal?: AbortSignal) {
    const begunMs = performance.now();
    const late = new AbortController();
    const timer = setTimeout(
      () => late.abort(new TaskNotSent("The machine was too busy to start the task in time.")),
      timeoutMs,
    );
    const work = () => {
      clearTimeout(timer);
      return send(machineId, task, timeoutMs - (performance.now() - begunMs), signal);
    };
    try {
      return await lane.run(work, signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]));
    } finally {
      clearTimeout(timer);
    }
  }

  async function send(machineId: string, task: Task, timeoutMs: number, signal?: AbortSignal): Promise<TaskResult> {
    const session = sessionOf(machineId);
    if (session === undefined) throw new TaskNotSent("The machine's stream is not open.");
    return session.run(task, timeoutMs, signal);
  }

  return {
    async run(machineId, task, timeoutMs, signal) {
      const name = `${machineId} ${task.lane}`;
      const queue = lanes.get(name) ?? { lane: createSemaphore(limits.atOnce), tasks: 0 };
      if (queue.lane.waiting >= limits.queued) throw tooManyRequests();
      lanes.set(name, queue);
      queue.tasks += 1;
      try {
        return await runInLane(queue.lane, machineId, task, timeoutMs, signal);
      } finally {
        queue.tasks -= 1;
        if (queue.tasks === 0) lanes.delete(name);
      }
    },
  };
}

/** The error RATE_LIMITED for a machine with too many waiting tasks. */
export function tooManyRequests(): HoldfastError {
  return new HoldfastError("RATE_LIMITED", "Too many requests wait for the machine.", { retryAfterS: 1 });
}
