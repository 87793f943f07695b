import type { TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { ObservedInstance } from "./session/observations.ts";
import type { LeaseReport, ControllerLeaseReport } from "./session/primary-leases.ts";
import type { SessionFacts } from "./session/session-facts.ts";
import type { TaskRequest, TaskState } from "./task/task.ts";

/**
 * Access of the other groups to the machines' agents. A machine is identified by its id; its stream may be at any
 * controller. The fleet depends on machines and tasks, but on no services.
 */
export interface Fleet {
  /**
   * Runs a quick task on the agent, over a stream of this controller or by a call to the controller that has it. Throws
   * MACHINE_UNREACHABLE if there is no stream or no result came in time (as TaskNotSent if the agent certainly did not
   * get the task), and RATE_LIMITED if too many tasks wait for the machine. A failure of the task itself is in the
   * result.
   */
  run(machineId: string, request: TaskRequest, timeoutMs: number, signal?: AbortSignal): Promise<TaskResult>;
  /**
   * Stores a durable task if its `onlyWhile` is met. A task with an existing id changes nothing: callers derive ids
   * from (owner, generation, step), so that another controller does not repeat a step. The controller that has the
   * machine's stream delivers the task at least once.
   */
  submit(machineId: string, taskId: string, request: TaskRequest, signal?: AbortSignal): Promise<void>;
  /** State of a durable task; undefined if it was never submitted, or ended more than 24 hours ago. */
  task(taskId: string): TaskState | undefined;
  cancel(taskId: string, signal?: AbortSignal): Promise<void>;
  /** Facts of the agent's stream; undefined unless a controller with a live lease has it. */
  session(machineId: string): SessionFacts | undefined;
  /** The machine's primary lease requests to this controller; undefined without a request in the last minute. */
  leaseReport(machineId: string): LeaseReport | undefined;
  /** Report of the controller that has the machine's stream; undefined while that controller has nothing to report. */
  controllerLeaseReport(machineId: string): ControllerLeaseReport | undefined;
  /**
   * Makes every controller refuse the machine primary leases under this term. Resolves with the milliseconds since the
   * last grant, or undefined while a controller has not confirmed.
   */
  revokePrimaryLease(machineId: string, term: number, signal: AbortSignal): Promise<number | undefined>;
  /** Last material observation of the machine's instance. It remains while the agent is disconnected. */
  observation(machineId: string): ObservedInstance | undefined;
  /** Calls back with a machine's id when its session, its observation or one of its tasks changed. */
  subscribe(onChange: (machineId: string) => void): { close(): void };
}
