import type { ControllerChannel } from "@holdfast/mtls/controller-channel.ts";
import type { Task, TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { DrivenInstance, EngineDriver } from "../engines/engine-driver.ts";
import { TaskFailed } from "../task-failed.ts";
import type { AgentUpgrade } from "../upgrade/agent-upgrade.ts";
import type { EngineFacet, Workload } from "../workload/workload.ts";
import type { WorkloadHost } from "../workload/workload-host.ts";

export type TaskKind = NonNullable<Task["input"]["case"]>;
export type InputOf<K extends TaskKind> = Extract<Task["input"], { case: K }>["value"];
export type OutputOf<K extends TaskKind> = Extract<TaskResult["output"], { case: K }>["value"];

/** Task kinds that change the engine's contents for a caller, who relies on the change once the task succeeds. */
export const changingKinds: ReadonlySet<TaskKind> = new Set([
  "putEngineUser",
  "dropEngineUser",
  "createEngineDatabase",
  "dropEngineDatabase",
  "createEngineTopic",
  "alterEngineTopic",
  "dropEngineTopic",
  "resetEngineGroup",
  "dropEngineGroup",
  "putEngineQueue",
  "removeEngineQueue",
  "callQueue",
  "prepareAuthSchema",
  "addAuthUser",
  "eraseAuthUser",
  "revokeAuthSession",
  "replayAuthErasures",
]);

/** Runs one kind of task. Delivery is at least once, so a second run must do no harm. */
export interface TaskHandler<K extends TaskKind> {
  /**
   * Called instead of `run` after a crash, for a task whose intent is in the journal and whose result is not. Returns
   * the outcome as the engine or the files have it, or undefined if the task must run (again).
   */
  inspect?(input: InputOf<K>, context: TaskContext): Promise<OutputOf<K> | undefined>;
  run(input: InputOf<K>, context: TaskContext): Promise<OutputOf<K>>;
}

export interface TaskContext {
  readonly taskId: string;
  readonly ownerId: string;
  readonly term: bigint;
  /** The machine's workload of any kind. */
  readonly workload: Pick<WorkloadHost, "current" | "apply">;
  /** The machine's engine, as `engineOf` returns it. */
  engine(): Promise<DrivenInstance>;
  readonly upgrade: AgentUpgrade;
  /** A connection for payloads. */
  channel(): Promise<ControllerChannel>;
  /** Cancels these tasks, and refuses to start them if they arrive later; resolves when none of them runs. */
  withdraw(taskIds: readonly string[]): Promise<void>;
  /** Cancels the tasks that change the engine's contents; resolves when none of them can still succeed. */
  endChanges(): Promise<void>;
  readonly signal: AbortSignal;
  /** Milliseconds until shortly before the deadline. Engine work bounded by it ends with a definite outcome. */
  readonly withinMs: number;
  progress(step: string, progressPct: number): void;
}

/** Throws "not_ready" before the first spec. */
function workloadOf({ workload }: Pick<TaskContext, "workload">): Workload {
  const current = workload.current();
  if (current === undefined) throw notReady("absent");
  return current;
}

/** The engine's part of the workload. Throws "not_supported" on a machine with another kind of workload. */
export function engineFacetOf(context: Pick<TaskContext, "workload">): EngineFacet {
  const { engine } = workloadOf(context);
  if (engine === undefined) throw new TaskFailed("not_supported", "This machine runs no engine.");
  return engine;
}

/** The running engine with its driver. Throws "not_ready" while there is none. */
export function engineOf(context: Pick<TaskContext, "workload">): DrivenInstance {
  const engine = engineFacetOf(context).current();
  if (engine === undefined) throw notReady(workloadOf(context).status.state);
  return engine;
}

function notReady(state: string): TaskFailed {
  return new TaskFailed("not_ready", `The engine is ${state}.`, { retryable: true });
}

// Each of these returns a facet of the driver, and throws "not_supported" for an engine that lacks it.
export const usersOf = (driver: EngineDriver) => present(driver, driver.users, "users");
export const databasesOf = (driver: EngineDriver) => present(driver, driver.databases, "databases");
export const queuesOf = (driver: EngineDriver) => present(driver, driver.queues, "queues");
export const identityOf = (driver: EngineDriver) => present(driver, driver.identity, "schema of end users");
export const queryStatsOf = (driver: EngineDriver) => present(driver, driver.queryStats, "statistics of queries");
export const sessionsOf = (driver: EngineDriver) => present(driver, driver.sessions, "list of running queries");
export const replicationOf = (driver: EngineDriver) => present(driver, driver.replication, "replication");
export const upgradeOf = (driver: EngineDriver) => present(driver, driver.upgrade, "upgrade of its data");
export const readOnlyQueryOf = (driver: EngineDriver) => present(driver, driver.readOnlyQuery, "query console");
export const unsupportedFeaturesOf = (driver: EngineDriver) =>
  present(driver, driver.unsupportedFeatures, "counts of unsupported features");

function present<F>({ engine }: EngineDriver, facet: F | undefined, name: string): F {
  if (facet === undefined) throw new TaskFailed("not_supported", `${engine} has no ${name}.`);
  return facet;
}
