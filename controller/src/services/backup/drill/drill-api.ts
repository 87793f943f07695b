import type { Handlers } from "@holdfast/common/call.ts";
import type { BackupService } from "@holdfast/proto/holdfast/v1/backup_pb.ts";
import { auditOf, commitAndSee } from "#access/caller.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { ServiceAccess } from "../../service/service-access.ts";
import type { ArchiveObject } from "../archive.ts";
import type { BackupAccess } from "../backup-access.ts";
import { refuseBackup } from "../backup-requests.ts";
import { createDrillDesk, type DrillDeskDeps } from "./drill-desk.ts";
import { drillMessage } from "./drill-message.ts";
import type { DrillObject } from "./drill.ts";

export interface DrillApiDeps extends DrillDeskDeps {
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
  const { drills, drillIndex, archives, operations, begin } = deps;
  const desk = createDrillDesk(deps);
  return {
    drillBackups: ({ serviceId }, call) =>
      retryConflict(call.signal, async () => {
        const { object: service } = deps.access.require(serviceId, call);
        refuseBackup(service);
        // A drill that another controller just added changed the archive: drills up to that revision are seen.
        await drills.reached(archives.get(serviceId)?.modRevision ?? 0n, 1_000);
        const unit = begin();
        const drill = desk.add(unit, service, "request");
        unit.audit(auditOf(call, "backup.drill", "drill", drill.metadata.id));
        const answer = drillMessage(drill);
        unit.answer(call, answer);
        await commitAndSee(call, unit, [archives, drills, operations]);
        return answer;
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
