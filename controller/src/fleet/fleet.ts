import type { TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { ObservedInstance } from "./session/observations.ts";
import type { SessionFacts } from "./session/session-facts.ts";
import type { TaskRequest, TaskState } from "./task/task.ts";

/** The machines' agents, as the rest of the controller sees them. It knows no resource. */
export interface Fleet {
  /**
   * Runs a quick task on the agent, over this controller's stream or through the controller that holds it.
   * Throws MACHINE_UNREACHABLE when no stream is there or no answer came in time, RATE_LIMITED when the machine has too much to
   * do; a failure of the task itself is in the result.
   */
  run(machineId: string, request: TaskRequest, timeoutMs: number, signal?: AbortSignal): Promise<TaskResult>;
  /**
   * Records a durable task, unless its `onlyWhile` does not hold; the same id again changes nothing. Ids derive from (owner,
   * generation, step), so that a new leader repeats nothing. It is delivered at least once, to whichever controller holds the
   * stream.
   */
  submit(machineId: string, taskId: string, request: TaskRequest, signal?: AbortSignal): Promise<void>;
  /** What became of a durable task: undefined when it was never submitted or is over 24 h old. */
  task(taskId: string): TaskState | undefined;
  cancel(taskId: string, signal?: AbortSignal): Promise<void>;
  /** Is an agent's stream held by a controller with a live lease? */
  session(machineId: string): SessionFacts | undefined;
  /** The last material observation of the machine's instance; kept when the agent is silent. */
  observation(machineId: string): ObservedInstance | undefined;
  /** Calls back with a machine's id when its session, observation or one of its tasks changed. */
  subscribe(onChange: (machineId: string) => void): { close(): void };
}
