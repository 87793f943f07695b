import type { Handlers } from "@holdfast/common/call.ts";
import {
  type BackupService,
  type Drill,
  DrillSchema,
  DrillStatus,
  DrillTrigger,
} from "@holdfast/proto/holdfast/v1/backup_pb.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { ServiceAccess } from "../../service/service-access.ts";
import type { ArchiveObject } from "../archive/archive.ts";
import type { BackupAccess } from "../backup-access.ts";
import { refuseBackup } from "../backup-requests.ts";
import { type DrillCreation, newDrill } from "./drill-creation.ts";
import type { DrillObject, DrillSpec } from "./drill.ts";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { DrillState } from "./drill-lifecycle.ts";
import { mutate } from "#access/mutate.ts";

export interface DrillApiDeps extends DrillCreation {
  readonly begin: () => UnitOfWork;
  readonly access: ServiceAccess;
  readonly archives: Collection<ArchiveObject>;
  readonly drills: Collection<DrillObject>;
  readonly operations: Collection<unknown>;
  readonly cursors: Cursors;
}

type DrillHandlers = Pick<Handlers<typeof BackupService>, "drillBackups" | "listDrills">;

/** The RPCs of drills. */
export function createDrillHandlers(deps: DrillApiDeps & { readonly owners: BackupAccess }): DrillHandlers {
  const { drills, drillIndex, archives, operations } = deps;
  const see = [archives, drills, operations];
  return {
    drillBackups: ({ serviceId }, call) =>
      mutate(deps, call, { action: "backup.drill", kind: "drill", visibleIn: see }, async (unit) => {
        const { object: service } = deps.access.require(serviceId, call);
        refuseBackup(service);
        // A concurrent drill changed the archive: wait until this controller has seen it.
        await drills.untilRevision(archives.get(serviceId)?.modRevision ?? 0n, 1_000);
        const drill = newDrill(unit, service, "request", deps);
        const response = drillMessage(drill);
        return { id: drill.metadata.id, response };
      }),

    listDrills: async (request, call) => {
      const { serviceId } = request;
      deps.owners.owner(serviceId, call);
      const page = deps.cursors.open(call, "drills", [serviceId], request);
      const newest = drillIndex
        .of(serviceId)
        .filter(({ metadata }) => page.after === undefined || metadata.id < page.after)
        .toReversed();
      const items = newest.slice(0, page.limit);
      const next = newest.length > items.length ? items.at(-1)?.metadata.id : undefined;
      return { drills: items.map(drillMessage), ...page.next(next) };
    },
  };
}

// biome-ignore format: a table, aligned so that it reads as one
const statuses: Record<DrillState, DrillStatus> = {
  pending:   DrillStatus.PENDING,
  running:   DrillStatus.RUNNING,
  completed: DrillStatus.COMPLETED,
  failed:    DrillStatus.FAILED,
};

const triggers: Record<DrillSpec["trigger"], DrillTrigger> = {
  schedule: DrillTrigger.SCHEDULE,
  request: DrillTrigger.REQUEST,
};

/** The drill as the API returns it. */
function drillMessage({ metadata, spec, status }: DrillObject): Drill {
  const target = spec.restores.find(({ targetTime }) => targetTime !== null)?.targetTime ?? null;
  const { startedAt, finishedAt, error, checks } = status;
  return create(DrillSchema, {
    id: metadata.id,
    serviceId: spec.serviceId,
    status: statuses[status.state],
    trigger: triggers[spec.trigger],
    backupId: spec.restores[0]?.backupId ?? "",
    ...(target !== null && { target: timestampFromMs(target) }),
    checks: checks.map((check) => ({ ...check })),
    ...(error && { error: error.message }),
    createdAt: timestampFromMs(metadata.createdAt),
    ...(startedAt !== null && { startedAt: timestampFromMs(startedAt) }),
    ...(finishedAt !== null && { finishedAt: timestampFromMs(finishedAt) }),
    operationId: spec.operationId,
  });
}
