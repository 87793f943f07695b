import type { Log } from "@holdfast/common/log.ts";
import { again, settled } from "#kernel/runtime/reconciler.ts";
import { hash } from "#kernel/runtime/ownership.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { ManagedServiceObject } from "../../service/managed-service.ts";
import { type BackupObject, isVisible } from "../backup.ts";
import { hasBackups } from "../service-backups.ts";
import { type DrillCreation, newDrill } from "./drill-creation.ts";
import { type DrillObject, isFinished } from "./drill.ts";

export interface DrillScheduleDeps extends DrillCreation {
  readonly services: Collection<ManagedServiceObject>;
  readonly drills: Collection<DrillObject>;
  readonly begin: () => UnitOfWork;
  readonly log: Log;
}

const dayMs = 86_400_000;
const intervalMs = 7 * dayMs;
const recheckMs = 3_600_000;

/**
 * Time at which the next scheduled drill begins, in milliseconds since 1970: a week after the last drill; the first two
 * to eight days after the first backup. Undefined before the first backup.
 */
export function nextDrillAt(
  serviceId: string,
  drills: readonly DrillObject[],
  completed: readonly BackupObject[],
): number | undefined {
  const last = drills.at(-1);
  if (last !== undefined) return last.metadata.createdAt + intervalMs;
  const first = completed[0]?.status.finishedAt ?? undefined;
  return first === undefined ? undefined : first + 2 * dayMs + (hash(`drill/${serviceId}`) % (6 * dayMs));
}

/** Creates a drill of each service once a week. Key: service id. */
export function createDrillSchedule(deps: DrillScheduleDeps): ControlLoop {
  const { services, drills, drillIndex, index, clock, log } = deps;
  return {
    reconciler: {
      name: "drill-schedule",
      async reconcile(id, signal) {
        const service = services.get(id)?.object;
        if (service === undefined || !hasBackups(service)) return settled;
        const isComplete = (backup: BackupObject) => isVisible(backup) && backup.status.state === "completed";
        const completed = index.of(id).flatMap(({ object }) => (isComplete(object) ? [object] : []));
        const drilled = drillIndex.of(id);
        const at = nextDrillAt(id, drilled, completed);
        const now = clock.now();
        const waits = service.status.state !== "Running" || drilled.some((drill) => !isFinished(drill));
        if (at === undefined || waits) return again(recheckMs, "no drill can begin");
        if (at > now) return again(Math.min(at - now, dayMs), "next drill");
        await drills.untilRevision(deps.archives.get(id)?.modRevision ?? 0n, 1_000);
        const unit = deps.begin();
        const drill = newDrill(unit, service, "schedule", deps);
        await drills.untilRevision(await unit.commit(signal), 1_000);
        log.info("scheduled drill created", { service: id, drill: drill.metadata.id });
        return again(dayMs, "drill created");
      },
    },
    keys: () => services.ids(),
    inputs: (id) => `${services.get(id)?.object.status.state ?? ""} ${drillIndex.of(id).length}`,
  };
}
