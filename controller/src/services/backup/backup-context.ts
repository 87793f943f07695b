import type { Clock } from "@holdfast/common/clock.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { unfinishedOrigin } from "../service/service-origin.ts";
import type { DeletedServices } from "../service/deleted-services.ts";
import type { Fleet } from "#fleet/fleet.ts";
import { definePart } from "#kernel/part.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { ArchiveObject } from "./archive/archive.ts";
import { basesOf } from "./backup-chain.ts";
import { type BackupIndex, type BackupObject, createBackupIndex } from "./backup.ts";
import type { BackupKeyObject } from "./backup-key.ts";
import { createDrillIndex, type DrillIndex, type DrillObject } from "./drill/drill.ts";
import { reportedRanges } from "./log/log-archive.ts";
import { createBackupSummaries } from "./backup-summary.ts";
import { createServiceBackups } from "./service-backups.ts";

export interface BackupContextDeps {
  readonly services: Collection<ManagedServiceObject>;
  readonly backups: Collection<BackupObject>;
  readonly archives: Collection<ArchiveObject>;
  readonly backupKeys: Collection<BackupKeyObject>;
  readonly drills: Collection<DrillObject>;
  readonly idleLogDelayMs: number;
  readonly finalBackupTimeoutMs: number;
  readonly sealer: Sealer;
  readonly clock: Clock;
  /** The last observation of a machine. */
  readonly observation: Fleet["observation"];
}

/** Shared views of backups: indexes, restorable ranges, and readers of a backup. */
export interface BackupContext {
  readonly index: BackupIndex;
  /** The archive, with the log position that the primary last reported. */
  readonly liveArchive: (serviceId: string) => ArchiveObject | undefined;
  readonly serviceBackups: ReturnType<typeof createServiceBackups>;
  readonly drillIndex: DrillIndex;
  readonly deleted: DeletedServices;
  /** Ids of the services and drills that a restore from the backup, or from an increment of it, is in progress for. */
  readonly readersOf: (backupId: string) => readonly string[];
  readonly backupsOf: ReturnType<typeof createBackupSummaries>;
}

export const backupContextPart = definePart<BackupContext>("views of backups");

export function createBackupContext(deps: BackupContextDeps): BackupContext {
  const { services, archives } = deps;
  const index = createBackupIndex(deps.backups);
  const drillIndex = createDrillIndex(deps.drills);
  function liveArchive(serviceId: string): ArchiveObject | undefined {
    const archive = archives.get(serviceId)?.object;
    const service = services.get(serviceId)?.object;
    if (archive === undefined || service === undefined) return archive;
    const log = reportedRanges(archive, service, (machineId) => deps.observation(machineId)?.instance.archive);
    return log === archive.status.log ? archive : { ...archive, status: { ...archive.status, log } };
  }
  /** Ids of increments that depend on the backup. */
  function sinceOf(backupId: string): string[] {
    const serviceId = index.get(backupId)?.object.spec.serviceId;
    const backups = serviceId === undefined ? [] : index.of(serviceId).map(({ object }) => object);
    const after = backups.filter((backup) => basesOf([backup], (id) => index.get(id)?.object).has(backupId));
    return after.map(({ metadata }) => metadata.id);
  }

  return {
    index,
    drillIndex,
    liveArchive,
    serviceBackups: createServiceBackups({ ...deps, index, liveArchive }),
    backupsOf: createBackupSummaries({ ...deps, index, drillIndex, liveArchive }),
    readersOf(backupId) {
      const reads = new Set([backupId, ...sinceOf(backupId)]);
      const readers: string[] = [];
      for (const { object } of services.values())
        if (reads.has(unfinishedOrigin(object.spec)?.backupId ?? "")) readers.push(object.metadata.id);
      return [...readers, ...[...reads].flatMap((id) => drillIndex.readersOf(id))];
    },
    deleted: {
      page(accepts, page) {
        const isDeleted = ({ status }: ArchiveObject) => status.deleted !== null && accepts(status.deleted.service);
        const { items, next } = archives.page(isDeleted, page);
        return { items: items.flatMap(({ object }) => object.status.deleted ?? []), next };
      },
    },
  };
}
