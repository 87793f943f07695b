import type { Collection } from "#kernel/store/collection.ts";
import { type DrillObject, openDrill, serviceOfDrill } from "./drill.ts";

/** Finds the drills of one service without looking at those of all others. */
export interface DrillIndex {
  /** Oldest first. */
  of(serviceId: string): DrillObject[];
  /** How many run, of every service. */
  running(): number;
  get(id: string): DrillObject | undefined;
  /** Drills that read the backup and have not ended, by id. */
  readersOf(backupId: string): string[];
}

export function createDrillIndex(drills: Pick<Collection<DrillObject>, "by" | "get">): DrillIndex {
  const open = () => drills.by(openDrill, "open").map(({ object }) => object);
  const reads = (backupId: string) => (drill: DrillObject) =>
    drill.spec.restores.some((restore) => restore.backupId === backupId);
  return {
    of: (serviceId) => drills.by(serviceOfDrill, serviceId).map(({ object }) => object),
    running: () => open().filter(({ status }) => status.state === "running").length,
    get: (id) => drills.get(id)?.object,
    readersOf: (backupId) =>
      open()
        .filter(reads(backupId))
        .map(({ metadata }) => metadata.id),
  };
}
