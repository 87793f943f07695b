import type { Log } from "@holdfast/common/log.ts";
import { again, settled } from "#kernel/runtime/reconciler.ts";
import { hash } from "#kernel/runtime/ownership.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { ManagedServiceObject } from "../../service/managed-service.ts";
import { type BackupObject, isShown } from "../backup.ts";
import { hasBackups } from "../service-backups.ts";
import { createDrillDesk, type DrillDeskDeps } from "./drill-desk.ts";
import { type DrillObject, isOver } from "./drill.ts";

export interface DrillScheduleDeps extends DrillDeskDeps {
  readonly services: Collection<ManagedServiceObject>;
  readonly drills: Collection<DrillObject>;
  readonly begin: () => UnitOfWork;
  readonly log: Log;
}

const dayMs = 86_400_000;
const everyMs = 7 * dayMs;
const lookAgainMs = 3_600_000;

/**
 * Pure: when the next drill of a service begins by itself: a week after its last one, the first one two to eight days after its
 * first backup. Undefined while there is nothing to try.
 */
export function nextDrillAt(
  serviceId: string,
  drills: readonly DrillObject[],
  completed: readonly BackupObject[],
): number | undefined {
  const last = drills.at(-1);
  if (last !== undefined) return last.metadata.createdAt + everyMs;
  const first = completed[0]?.status.finishedAt ?? undefined;
  return first === undefined ? undefined : first + 2 * dayMs + (hash(`drill/${serviceId}`) % (6 * dayMs));
}

/** Has a drill of each service begin once a week. Key: service id. */
export function createDrillSchedule(deps: DrillScheduleDeps): ControlLoop {
  const { services, drills, drillIndex, index, clock, log } = deps;
  const desk = createDrillDesk(deps);
  return {
    reconciler: {
      name: "drill-schedule",
      async reconcile(id, signal) {
        const service = services.get(id)?.object;
        if (service === undefined || !hasBackups(service)) return settled;
        const isThere = (backup: BackupObject) => isShown(backup) && backup.status.state === "completed";
        const completed = index.of(id).flatMap(({ object }) => (isThere(object) ? [object] : []));
        const drilled = drillIndex.of(id);
        const at = nextDrillAt(id, drilled, completed);
        const now = clock.now();
        const waits = service.status.state !== "Running" || drilled.some((drill) => !isOver(drill));
        if (at === undefined || waits) return again(lookAgainMs, "nothing to try now");
        if (at > now) return again(Math.min(at - now, dayMs), "next drill");
        await drills.reached(deps.archives.get(id)?.modRevision ?? 0n, 1_000);
        const unit = deps.begin();
        const drill = desk.add(unit, service, "schedule");
        await drills.reached(await unit.commit(signal), 1_000);
        log.info("drill due", { service: id, drill: drill.metadata.id });
        return again(dayMs, "drill begun");
      },
    },
    keys: () => services.ids(),
    inputs: (id) => `${services.get(id)?.object.status.state ?? ""} ${drillIndex.of(id).length}`,
  };
}
