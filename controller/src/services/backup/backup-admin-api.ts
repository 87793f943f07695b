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
import { adminPage, adminPageByName } from "#kernel/page/admin-page.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { ArchiveObject, LogRange } from "./archive.ts";
import type { BackupIndex } from "./backup-index.ts";
import { type BackupObject, hasEnded, isClear, isShown } from "./backup.ts";
import { type DueExpiry, dueExpiry } from "./due-expiry.ts";
import { restorableOf } from "./restorable.ts";
import { objectsBelow } from "./stored-prefix.ts";

export interface BackupAdminApiDeps {
  readonly archives: Collection<ArchiveObject>;
  readonly backups: Collection<BackupObject>;
  readonly services: Pick<Collection<ManagedServiceObject>, "get">;
  readonly index: Pick<BackupIndex, "of">;
  /** With what the service's machine told last. */
  readonly liveArchive: (serviceId: string) => ArchiveObject | undefined;
  /** Services, and drills, that are being restored from a backup. */
  readonly readersOf: (backupId: string) => readonly string[];
  /** Does anything stand against deleting what time has come for? */
  readonly held: () => boolean;
  readonly objects: Pick<ObjectStore, "list">;
  readonly cursors: Cursors;
  readonly clock: Clock;
}

/** With what its place in the list follows from. */
interface NamedExpiry {
  readonly name: string;
  readonly expiry: MessageInitShape<typeof ExpirySchema>;
}

/** What operators see of the backups of all services. */
export function createBackupAdminApi(deps: BackupAdminApiDeps): ServedService {
  const { archives, backups, services, index, liveArchive, cursors } = deps;
  const all = (serviceId: string) => index.of(serviceId).map(({ object }) => object);
  const live = (archive: ArchiveObject) => liveArchive(archive.metadata.id) ?? archive;

  function shownArchive(stored: ArchiveObject): MessageInitShape<typeof ArchiveSchema> {
    const archive = live(stored);
    const { metadata, spec, status } = archive;
    const completed = all(metadata.id).filter((backup) => isShown(backup) && backup.status.state === "completed");
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

  async function shownUpload(
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

  function* expiries(at: number): Generator<NamedExpiry> {
    const isHeld = deps.held();
    const isRead = ({ metadata }: BackupObject) => deps.readersOf(metadata.id).length > 0;
    for (const { object: archive } of archives.values()) {
      const { id } = archive.metadata;
      const world = { archive: live(archive), isThere: services.get(id) !== undefined, backups: all(id), isRead };
      for (const due of dueExpiry(world, at)) {
        const shown = shownExpiry(due);
        const waitsFor = due.kind === "backup" && due.isRead ? "restore" : isHeld ? "hold" : "";
        const name = `${id} ${shown.kind} ${shown.id} ${String(shown.term ?? 0).padStart(20, "0")}`;
        yield { name, expiry: { ...shown, serviceId: id, waitsFor } };
      }
    }
  }

  const handlers: Handlers<typeof BackupService> = {
    listArchives: async ({ page }, call) => {
      const { items, ...next } = adminPage(archives, () => true, page, call, cursors, "archives");
      return { archives: items.map(shownArchive), ...next };
    },

    listLogRanges: async ({ page, serviceId }, call) => {
      const archive = liveArchive(serviceId);
      if (archive === undefined) throw new HoldfastError("OBJECT_NOT_FOUND", `Nothing is archived of ${serviceId}.`);
      const list = `log ranges ${serviceId}`;
      const { items, ...next } = adminPageByName(archive.status.log, nameOfRange, page, call, cursors, list);
      return { ranges: items.map(shownRange), ...next };
    },

    listUploads: async ({ page }, call) => {
      const { items, ...next } = adminPage(backups, isUpload, page, call, cursors, "uploads");
      const uploads = [];
      for (const backup of items) uploads.push(await shownUpload(backup, call.signal));
      return { uploads, ...next };
    },

    listExpiry: async ({ page, at: asked }, call) => {
      const at = asked === undefined ? deps.clock.now() : timestampMs(asked);
      const list = `expiry ${asked === undefined ? "" : at}`;
      const { items, ...next } = adminPageByName(expiries(at), ({ name }) => name, page, call, cursors, list);
      return { expiries: items.map(({ expiry }) => expiry), ...next };
    },
  };
  return serve(BackupService, handlers);
}

/** Are there objects of it that no completed backup needs, or may there be? */
function isUpload(backup: BackupObject): boolean {
  if (backup.status.attempt === 0) return false;
  return !hasEnded(backup) || !isShown(backup) || !isClear(backup);
}

/** Terms only grow, whichever archive they are of. */
function nameOfRange({ term, archiveId }: LogRange): string {
  return `${String(term).padStart(20, "0")} ${archiveId}`;
}

function shownRange(range: LogRange) {
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

function shownExpiry(due: DueExpiry): MessageInitShape<typeof ExpirySchema> {
  switch (due.kind) {
    case "backup":
      return { kind: due.kind, id: due.backup.metadata.id, sizeBytes: BigInt(due.backup.status.sizeBytes ?? 0) };
    case "log":
      return { kind: due.kind, id: due.range.archiveId, term: BigInt(due.range.term), objects: BigInt(due.objects) };
    case "archive":
      return { kind: due.kind };
  }
}
