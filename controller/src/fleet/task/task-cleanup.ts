import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { MachineObject } from "../machine/machine.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { DurableTasks } from "./durable-tasks.ts";

/** Ends tasks whose deadline passed or whose machine was deleted, and deletes ended tasks after their retention. */
export interface TaskCleanup {
  /** Fails the open tasks of a machine that is deleted or being deleted. */
  failTasksOf(machineId: string): Promise<void>;
  close(): void;
}

export interface TaskCleanupDeps {
  readonly durable: DurableTasks;
  readonly machines: Pick<Collection<MachineObject>, "get" | "getCurrent">;
  readonly clock: Clock;
  readonly log: Log;
  /** Interval of the checks of deadlines. */
  readonly checkIntervalMs: number;
  /** False while this controller has no lease. */
  readonly canAct: () => boolean;
  /** Called at each sweep of tasks, for other sweeps with the same interval. */
  readonly alsoSweep: () => void;
}

const sweepIntervalMs = 60_000;

export function createTaskCleanup(deps: TaskCleanupDeps): TaskCleanup {
  const { durable, machines, clock, log, canAct, alsoSweep } = deps;
  let lastSweepMs = clock.monotonicMs();
  let working = false;

  async function failTasksOf(machineId: string): Promise<void> {
    for (const task of durable.openOf(machineId)) {
      await durable
        .end(task.metadata.id, "machineDeleted", "machine_deleted", "The machine was deleted.")
        .catch((error: unknown) =>
          log.warn("task of a deleted machine not ended", { machine: machineId, error: String(error) }),
        );
    }
  }

  /** Fails tasks of deleted machines. The cache may not have a new machine yet, so the store is read. */
  async function failOrphans(): Promise<void> {
    for (const machineId of durable.machinesWithOpen()) {
      if (machines.get(machineId) !== undefined) continue;
      if ((await machines.getCurrent(machineId)) === undefined) await failTasksOf(machineId);
    }
  }

  async function cleanUp(): Promise<void> {
    await durable.expire();
    if (clock.monotonicMs() - lastSweepMs < sweepIntervalMs) return;
    lastSweepMs = clock.monotonicMs();
    alsoSweep();
    await failOrphans();
    await durable.sweep();
  }

  const checkTimer = setInterval(() => {
    if (!canAct() || working) return;
    working = true;
    cleanUp()
      .catch((error: unknown) => log.warn("task cleanup failed", { error: String(error) }))
      .finally(() => {
        working = false;
      });
  }, deps.checkIntervalMs).unref();

  return { failTasksOf, close: () => clearInterval(checkTimer) };
}
