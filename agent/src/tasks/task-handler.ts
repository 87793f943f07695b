import type { Task, TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Backups } from "../backup/backups.ts";
import type { ControllerChannel } from "@holdfast/mtls/controller-channel.ts";
import type { EngineDriver, Instance } from "../engines/engine-driver.ts";
import type { InstanceSupervisor } from "../instance/instance-supervisor.ts";
import type { LogReader } from "../instance/log-reader.ts";
import type { AgentUpgrade } from "../upgrade/agent-upgrade.ts";
import type { Quiet } from "../right/quiet.ts";

export type TaskKind = NonNullable<Task["input"]["case"]>;
export type InputOf<K extends TaskKind> = Extract<Task["input"], { case: K }>["value"];
export type OutputOf<K extends TaskKind> = Extract<TaskResult["output"], { case: K }>["value"];

/** Kinds that change what is in the engine for a caller, who counts on the change once the task succeeds. */
export const changingKinds: ReadonlySet<TaskKind> = new Set([
  "putEngineUser",
  "dropEngineUser",
  "createEngineDatabase",
  "dropEngineDatabase",
  "putEngineQueue",
  "removeEngineQueue",
  "callQueue",
  "prepareAuthSchema",
  "addAuthUser",
  "eraseAuthUser",
  "revokeAuthSession",
  "replayAuthErasures",
]);

/** One kind of task. Running it twice must do no harm: delivery is at least once. */
export interface TaskHandler<K extends TaskKind> {
  /**
   * Asked for an intent that has no result, after a crash: what came of it, from the engine or the files, not from
   * memory. Undefined means that it is to run (again).
   */
  inspect?(input: InputOf<K>, context: TaskContext): Promise<OutputOf<K> | undefined>;
  run(input: InputOf<K>, context: TaskContext): Promise<OutputOf<K>>;
}

export interface TaskContext {
  readonly taskId: string;
  readonly ownerId: string;
  readonly term: bigint;
  readonly supervisor: InstanceSupervisor;
  readonly logs: LogReader;
  readonly upgrade: AgentUpgrade;
  readonly backups: Backups;
  /** Of this machine's replica. */
  readonly quiet: Pick<Quiet, "quietMs">;
  /** The engine with its driver; throws "not_ready" until one was asked for. */
  engine(): Promise<{ driver: EngineDriver; instance: Instance }>;
  /** A connection for payloads. */
  channel(): Promise<ControllerChannel>;
  /** Has these tasks end here and now, and never begin if they come later; resolves when none of them runs. */
  withdraw(taskIds: readonly string[]): Promise<void>;
  /** Ends the tasks that change what is in the engine; resolves when none of them can still be acknowledged. */
  endChanges(): Promise<void>;
  readonly signal: AbortSignal;
  /** Until shortly before the deadline: what ends by itself within it has an outcome that is known. */
  readonly withinMs: number;
  progress(step: string, progressPct: number): void;
}
