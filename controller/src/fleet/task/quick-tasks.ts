import { HoldfastError } from "@holdfast/common/errors.ts";
import { createKeyedSemaphore } from "@holdfast/common/concurrency/semaphore.ts";
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
  const lanes = createKeyedSemaphore(limits.atOnce, {
    waitingMax: limits.queued,
    refusal: (reason) =>
      reason === "queue_full"
        ? tooManyRequests()
        : new TaskNotSent("The machine was too busy to start the task in time."),
  });

  async function send(machineId: string, task: Task, timeoutMs: number, signal?: AbortSignal): Promise<TaskResult> {
    const session = sessionOf(machineId);
    if (session === undefined) throw new TaskNotSent("The machine's stream is not open.");
    return session.run(task, timeoutMs, signal);
  }

  return {
    run(machineId, task, timeoutMs, signal) {
      const begunMs = performance.now();
      const work = () => send(machineId, task, timeoutMs - (performance.now() - begunMs), signal);
      return lanes.run(`${machineId} ${task.lane}`, work, { signal, waitMs: timeoutMs });
    },
  };
}

/** The error RATE_LIMITED for a machine with too many waiting tasks. */
export function tooManyRequests(): HoldfastError {
  return new HoldfastError("RATE_LIMITED", "Too many requests wait for the machine.", { retryAfterS: 1 });
}
