import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { MachineObject } from "../machine/machine.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { DurableTasks } from "./durable-tasks.ts";

/** Ends the tasks that no agent will end any more, and forgets those that ended long ago. */
export interface TaskUpkeep {
  /** The machine is gone or going: its tasks fail. */
  failOf(machineId: string): Promise<void>;
  close(): void;
}

export interface TaskUpkeepDeps {
  readonly durable: DurableTasks;
  readonly machines: Pick<Collection<MachineObject>, "get" | "fresh">;
  readonly clock: Clock;
  readonly log: Log;
  /** How often tasks are looked at. */
  readonly tickMs: number;
  /** False while this controller may do nothing. */
  readonly acting: () => boolean;
  /** Called with each sweep, for what else is swept as often. */
  readonly alsoSweep: () => void;
}

const sweepEveryMs = 60_000;

export function createTaskUpkeep(deps: TaskUpkeepDeps): TaskUpkeep {
  const { durable, machines, clock, log, acting, alsoSweep } = deps;
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

  /** Memory may not have a machine yet that a task is for; only the store can say that it is gone. */
  async function failOrphans(): Promise<void> {
    for (const machineId of durable.machinesWithOpen()) {
      if (machines.get(machineId) !== undefined) continue;
      if ((await machines.fresh(machineId)) === undefined) await failOf(machineId);
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
    if (!acting() || working) return;
    working = true;
    tend()
      .catch((error: unknown) => log.warn("tasks not tended", { error: String(error) }))
      .finally(() => {
        working = false;
      });
  }, deps.tickMs).unref();

  return { failOf, close: () => clearInterval(ticking) };
}
