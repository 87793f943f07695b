import type { TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { ObservedInstance } from "./session/observations.ts";
import type { HeardRight, Silence } from "./session/rights.ts";
import type { SessionFacts } from "./session/session-facts.ts";
import type { TaskRequest, TaskState } from "./task/task.ts";

/** The machines' agents, as the rest of the controller sees them. It knows no resource. */
export interface Fleet {
  /**
   * Runs a quick task on the agent, over this controller's stream or through the controller that holds it. Throws
   * MACHINE_UNREACHABLE when no stream is there or no answer came in time, as NotAsked when the task was not sent; RATE_LIMITED
   * when the machine has too much to do. A failure of the task itself is in the result.
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
  /** What this controller heard of the machine's right to be a primary; undefined when it was not asked lately. */
  heardRight(machineId: string): HeardRight | undefined;
  /** What another controller that holds the machine's stream says of it; undefined while nothing is amiss. */
  silentElsewhere(machineId: string): Silence | undefined;
  /**
   * Has all controllers grant the machine no right under this term any more. Resolves with the milliseconds for which none has; undefined
   * while one of them did not say so.
   */
  revokeRight(machineId: string, term: number, signal: AbortSignal): Promise<number | undefined>;
  /** The last material observation of the machine's instance; kept when the agent is silent. */
  observation(machineId: string): ObservedInstance | undefined;
  /** Calls back with a machine's id when its session, observation or one of its tasks changed. */
  subscribe(onChange: (machineId: string) => void): { close(): void };
}
