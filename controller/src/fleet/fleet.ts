import type { InstanceObservation, TaskProgress } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { Task, TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";

/** Input of a task, by kind: `{ case: "listEngineUsers", value: {...} }`. */
export type TaskInput = Task["input"];

/** The machines' agents, as the rest of the controller sees them. It knows no resource. */
export interface Fleet {
  /**
   * Runs a quick task on the agent, over this controller's stream or through the controller that holds it.
   * Throws MACHINE_UNREACHABLE when no stream is there or no answer came in time; a failure of the task itself is in the result.
   */
  run(machineId: string, request: TaskRequest, timeoutMs: number, signal?: AbortSignal): Promise<TaskResult>;
  /**
   * Records a durable task; the same id again changes nothing. Ids derive from (owner, generation, step), so that a new
   * leader repeats nothing. It is delivered at least once, to whichever controller holds the stream.
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

export interface TaskRequest {
  readonly ownerId: string;
  readonly generation: number;
  readonly term: number;
  readonly lane: "control" | "query" | "bulk";
  readonly input: TaskInput;
  readonly deadlineMs: number;
}

export interface TaskState {
  readonly status: "pending" | "running" | "completed" | "failed";
  readonly progress: TaskProgress | undefined;
  readonly result: TaskResult | undefined;
}

export interface SessionFacts {
  readonly controllerId: string;
  readonly connectedAt: number;
  /** Release of the agent, and digest of its code; the digest is empty for one that runs from a checkout. */
  readonly agentVersion: string;
  readonly agentDigest: string;
  /** Version of the machine's keeper; 0 when the agent told none. */
  readonly keeperProtocol: number;
  /** Changes with each start of the machine. */
  readonly bootId: string;
}

export interface ObservedInstance {
  readonly instance: InstanceObservation;
  readonly observedAt: number;
  /** The start of the machine that it was observed in, as in SessionFacts. */
  readonly bootId: string;
}
