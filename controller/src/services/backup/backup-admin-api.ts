import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { backupPrefix } from "@holdfast/common/backup/object-names.ts";
import { type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import {
  type ArchiveSchema,
  BackupService,
  type ExpirySchema,
  type UploadSchema,
} from "@holdfast/proto/holdfast/admin/v1/backup_pb.ts";
import { adminPage, adminPageByName, type Cursors } from "#kernel/page/cursor.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { ArchiveObject, LogRange } from "./archive/archive.ts";
import { type BackupIndex, type BackupObject, hasEnded, isClear, isVisible } from "./backup.ts";
import { type DueExpiry, dueExpiry } from "./archive/backup-retention.ts";
import { restorableOf } from "./restore/restorable.ts";
import { objectsBelow } from "./objects/stored-prefix.ts";

export interface BackupAdminApiDeps {
  readonly archives: Pick<Collection<ArchiveObject>, "page" | "values">;
  readonly backups: Pick<Collection<BackupObject>, "page">;
  readonly services: Pick<Collection<ManagedServiceObject>, "get">;
  readonly index: Pick<BackupIndex, "of">;
  /** The archive, with the log position that the primary last reported. */
  readonly liveArchive: (serviceId: string) => ArchiveObject | undefined;
  /** Ids of the services and drills that a restore from this backup is in progress for. */
  readonly readersOf: (backupId: string) => readonly string[];
  /** True while an operator defers deletions that are due. */
  readonly expiryDeferred: () => boolean;
  readonly objects: Pick<ObjectStore, "list">;
  readonly cursors: Cursors;
  readonly clock: Clock;
}

/** An expiry with its sort key in the response of ListExpiry. */
interface ListedExpiry {
  readonly sortKey: string;
  readonly expiry: MessageInitShape<typeof ExpirySchema>;
}

/** The admin RPCs: archives, log ranges, uploads and expiry of all services. */
export function createBackupAdminApi(deps: BackupAdminApiDeps): ServedService {
  const { archives, backups, services, index, liveArchive, cursors } = deps;
  const all = (serviceId: string) => index.of(serviceId).map(({ object }) => object);
  const live = (archive: ArchiveObject) => liveArchive(archive.metadata.id) ?? archive;

  function archiveMessage(stored: ArchiveObject): MessageInitShape<typeof ArchiveSchema> {
    const archive = live(stored);
    const { metadata, spec, status } = archive;
    const completed = all(metadata.id).filter((backup) => isVisible(backup) && backup.status.state === "completed");
    const { span, gaps } = restorableOf(spec.source.databaseType, archive, completed);
    return {
      serviceId: metadata.id,
      serviceName: metadata.name,
      organizationId: metadata.organizationId,
      engine: spec.source.databaseType,
      archiveId: spec.log?.archiveId ?? "",
      term: BigInt(status.log.at(-1)?.term ?? 0),
      logRanges: status.log.length,
      backups: completed.length,
      gaps: gaps.length,
      ...(span && { restorableFrom: timestampFromMs(span.from), restorableTo: timestampFromMs(span.to) }),
      ...(status.deleted && { keptUntil: timestampFromMs(status.deleted.until) }),
    };
  }

  async function uploadMessage(
    { metadata, spec, status }: BackupObject,
    signal: AbortSignal,
  ): Promise<MessageInitShape<typeof UploadSchema>> {
    let [count, bytes] = [0, 0];
    for await (const { sizeBytes } of objectsBelow(deps.objects, backupPrefix(spec.serviceId, metadata.id), {
      signal,
    })) {
      count += 1;
      bytes += sizeBytes;
    }
    return {
      backupId: metadata.id,
      serviceId: spec.serviceId,
      organizationId: metadata.organizationId,
      status: status.state,
      attempt: status.attempt,
      machineId: status.machineId ?? "",
      objects: BigInt(count),
      sizeBytes: BigInt(bytes),
      ...(status.startedAt !== null && { startedAt: timestampFromMs(status.startedAt) }),
      progressedAt: timestampFromMs(status.progressedAt),
    };
  }

  function* expiries(at: number): Generator<ListedExpiry> {
    const isDeferred = deps.expiryDeferred();
    const isRead = ({ metadata }: BackupObject) => deps.readersOf(metadata.id).length > 0;
    for (const { object: archive } of archives.values()) {
      const { id } = archive.metadata;
      const observed = {
        archive: live(archive),
        serviceExists: services.get(id) !== undefined,
        backups: all(id),
        isRead,
      };
      for (const due of dueExpiry(observed, at)) {
        const message = expiryMessage(due);
        const waitsFor = due.kind === "backup" && due.isRead ? "restore" : isDeferred ? "hold" : "";
        const sortKey = `${id} ${message.kind} ${message.id} ${String(message.term ?? 0).padStart(20, "0")}`;
        yield { sortKey, expiry: { ...message, serviceId: id, waitsFor } };
      }
    }
  }

  const handlers: Handlers<typeof BackupService> = {
    listArchives: async ({ page }, call) => {
      const { items, ...next } = adminPage(archives, () => true, page, call, cursors, "archives");
      return { archives: items.map(archiveMessage), ...next };
    },

    listLogRanges: async ({ page, serviceId }, call) => {
      const archive = liveArchive(serviceId);
      if (archive === undefined) throw new HoldfastError("OBJECT_NOT_FOUND", `${serviceId} has no archive.`);
      const list = `log ranges ${serviceId}`;
      const { items, ...next } = adminPageByName(archive.status.log, sortKeyOfRange, page, call, cursors, list);
      return { ranges: items.map(rangeMessage), ...next };
    },

    listUploads: async ({ page }, call) => {
      const { items, ...next } = adminPage(backups, isUpload, page, call, cursors, "uploads");
      const uploads = [];
      for (const backup of items) uploads.push(await uploadMessage(backup, call.signal));
      return { uploads, ...next };
    },

    listExpiry: async ({ page, at: requestedAt }, call) => {
      const at = requestedAt === undefined ? deps.clock.now() : timestampMs(requestedAt);
      const list = `expiry ${requestedAt === undefined ? "" : at}`;
      const { items, ...next } = adminPageByName(expiries(at), ({ sortKey }) => sortKey, page, call, cursors, list);
      return { expiries: items.map(({ expiry }) => expiry), ...next };
    },
  };
  return serve(BackupService, handlers);
}

/** True if there are, or may be, stored objects that no completed backup needs. */
function isUpload(backup: BackupObject): boolean {
  if (backup.status.attempt === 0) return false;
  return !hasEnded(backup) || !isVisible(backup) || !isClear(backup);
}

/** Sort key of a range. Terms only grow, over all archives of a service. */
function sortKeyOfRange({ term, archiveId }: LogRange): string {
  return `${String(term).padStart(20, "0")} ${archiveId}`;
}

function rangeMessage(range: LogRange) {
  const { archiveId, term, firstSequence, lastSequence, fromTime, toTime, continues = false } = range;
  return {
    archiveId,
    term: BigInt(term),
    firstSequence: BigInt(firstSequence),
    lastSequence: BigInt(lastSequence),
    from: timestampFromMs(fromTime),
    to: timestampFromMs(toTime),
    continues,
  };
}

function expiryMessage(due: DueExpiry): MessageInitShape<typeof ExpirySchema> {
  switch (due.kind) {
    case "backup":
      return { kind: due.kind, id: due.backup.metadata.id, sizeBytes: BigInt(due.backup.status.sizeBytes ?? 0) };
    case "log":
      return { kind: due.kind, id: due.range.archiveId, term: BigInt(due.range.term), objects: BigInt(due.objects) };
    case "archive":
      return { kind: due.kind };
  }
}
