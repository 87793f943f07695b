import { HoldfastError } from "@holdfast/common/errors.ts";
import { createKeyedSemaphore } from "@holdfast/common/concurrency/semaphore.ts";
import type { Task, TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { TaskNotSent } from "../task-not-sent.ts";
import type { AgentSession } from "../session/session.ts";

export interface QuickTasksDeps {
  /** Maximum number of tasks of one machine and lane that are sent and unanswered, and that wait to be sent. */
  readonly limits: { readonly concurrency: number; readonly queued: number };
  /** The machine's stream, if this controller has it and may act on it. */
  readonly sessionOf: (machineId: string) => AgentSession | undefined;
}

/**
 * Runs quick tasks on the streams here. The controller limits an agent's concurrent tasks: above `concurrency` tasks
 * wait in order, and above `queued` waiting tasks further ones are refused.
 */
export interface QuickTasks {
  /**
   * Throws MACHINE_UNREACHABLE if the stream breaks or the result does not arrive in time (as TaskNotSent if the stream
   * is elsewhere or the task was not sent in time), and RATE_LIMITED if too many tasks wait.
   */
  run(machineId: string, task: Task, timeoutMs: number, signal?: AbortSignal): Promise<TaskResult>;
}

export function createQuickTasks({ limits, sessionOf }: QuickTasksDeps): QuickTasks {
  const lanes = createKeyedSemaphore(limits.concurrency, {
    waitingMax: limits.queued,
    refusal: (reason) =>
      reason === "queue_full"
        ? tooManyRequests()
        : new TaskNotSent("The machine is too busy: the task was not started in time."),
  });

  async function send(machineId: string, task: Task, timeoutMs: number, signal?: AbortSignal): Promise<TaskResult> {
    const session = sessionOf(machineId);
    if (session === undefined) throw new TaskNotSent("The machine's stream is not open.");
    return session.run(task, timeoutMs, signal);
  }

  return {
    run(machineId, task, timeoutMs, signal) {
      const startedMs = performance.now();
      const work = () => send(machineId, task, timeoutMs - (performance.now() - startedMs), signal);
      return lanes.run(`${machineId} ${task.lane}`, work, { signal, waitMs: timeoutMs });
    },
  };
}

/** The error RATE_LIMITED for a machine with too many waiting tasks. */
export function tooManyRequests(): HoldfastError {
  return new HoldfastError("RATE_LIMITED", "Too many requests wait for the machine. Try again later.", {
    retryAfterS: 1,
  });
}
