import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { MachineObject } from "../machine/machine.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { DurableTasks } from "./durable-tasks.ts";

/** Ends tasks whose deadline passed or whose machine was deleted, and deletes tasks that ended long ago. */
export interface TaskUpkeep {
  /** Fails the tasks of a machine that is deleted or being deleted. */
  failOf(machineId: string): Promise<void>;
  close(): void;
}

export interface TaskUpkeepDeps {
  readonly durable: DurableTasks;
  readonly machines: Pick<Collection<MachineObject>, "get" | "getCurrent">;
  readonly clock: Clock;
  readonly log: Log;
  /** Interval of the checks of deadlines. */
  readonly tickMs: number;
  /** False while this controller has no lease. */
  readonly canAct: () => boolean;
  /** Called at each sweep, for other sweeps with the same interval. */
  readonly alsoSweep: () => void;
}

const sweepEveryMs = 60_000;

export function createTaskUpkeep(deps: TaskUpkeepDeps): TaskUpkeep {
  const { durable, machines, clock, log, canAct, alsoSweep } = deps;
  let lastSweepMs = clock.monotonicMs();
  let working = false;

  async function failOf(machineId: string): Promise<void> {
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
      if ((await machines.getCurrent(machineId)) === undefined) await failOf(machineId);
    }
  }

  async function tend(): Promise<void> {
    await durable.expire();
    if (clock.monotonicMs() - lastSweepMs < sweepEveryMs) return;
    lastSweepMs = clock.monotonicMs();
    alsoSweep();
    await failOrphans();
    await durable.sweep();
  }

  const ticking = setInterval(() => {
    if (!canAct() || working) return;
    working = true;
    tend()
      .catch((error: unknown) => log.warn("task upkeep failed", { error: String(error) }))
      .finally(() => {
        working = false;
      });
  }, deps.tickMs).unref();

  return { failOf, close: () => clearInterval(ticking) };
}
