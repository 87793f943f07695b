import type { Clock } from "@holdfast/common/clock.ts";
import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { operationKind, type OperationObject } from "#operation/operation.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf } from "#kernel/store/resource.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import { type ManagedServiceObject, serviceSubject } from "../../service/managed-service.ts";
import { archiveKind, type ArchiveObject, sourceOf, type TimeSpan } from "../archive/archive.ts";
import { basesOf } from "../backup-chain.ts";
import { type BackupIndex, backupKind, type BackupObject, isVisible } from "../backup.ts";
import { choosePoint, sourceIn } from "../restore/restore-point.ts";
import { restorableOf } from "../restore/restorable.ts";
import {
  type DrillIndex,
  drillKind,
  type DrillObject,
  type DrillRestore,
  type DrillSpec,
  isFinished,
  newDrillObject,
} from "./drill.ts";
import { newOperation } from "#operation/operation-definition.ts";
import { backupOperations } from "../backup-operations.ts";

/** Dependencies of `newDrill`. */
export interface DrillCreation {
  readonly archives: Pick<Collection<ArchiveObject>, "get">;
  readonly index: BackupIndex;
  readonly drillIndex: DrillIndex;
  readonly liveArchive: (serviceId: string) => ArchiveObject | undefined;
  /**
   * Time of the last start of the service's engine, by its machine's clock, in milliseconds since 1970; undefined while
   * the engine does not run.
   */
  readonly upSince: (service: ManagedServiceObject) => number | undefined;
  readonly random: () => number;
  readonly newId: () => string;
  readonly clock: Clock;
}

/**
 * Adds a drill and its operation to the unit of work. Throws WRONG_STATE without a completed backup, and
 * OPERATION_IN_PROGRESS while another drill of the service is in progress.
 */
export function newDrill(
  unit: Changes,
  service: ManagedServiceObject,
  trigger: DrillSpec["trigger"],
  deps: DrillCreation,
): DrillObject {
  const { index, newId, clock } = deps;
  const { id: serviceId, organizationId } = service.metadata;
  if (deps.drillIndex.of(serviceId).some((drill) => !isFinished(drill)))
    throw new HoldfastError("OPERATION_IN_PROGRESS", "A drill of the service is already in progress.");
  const isComplete = (backup: BackupObject) => isVisible(backup) && backup.status.state === "completed";
  const completed = index.of(serviceId).flatMap(({ object }) => (isComplete(object) ? [object] : []));
  const newest = completed.at(-1);
  const archive = deps.archives.get(serviceId);
  if (newest === undefined || archive === undefined)
    throw new HoldfastError("WRONG_STATE", "The service has no completed backup yet.");
  const now = clock.now();
  const restores = restoresOf(service, newest, completed, deps);
  const operation: OperationObject = newOperation({
    id: newId(),
    subject: serviceSubject(serviceId),
    organizationId,
    type: backupOperations.drill,
    now,
  });
  const operationId = operation.metadata.id;
  const source = sourceIn(newest.spec.version, sourceOf(service));
  const drill = newDrillObject(newId(), organizationId, { serviceId, trigger, operationId, source, restores }, now);
  // The transaction fails if a backup that the drill reads is deleted before the commit.
  const get = (id: string) => index.get(id)?.object;
  const read = restores.flatMap((restore) => get(restore.backupId) ?? []);
  for (const backupId of new Set([...read.map(({ metadata }) => metadata.id), ...basesOf(read, get)])) {
    const modRevision = index.get(backupId)?.modRevision;
    if (modRevision !== undefined) unit.onlyWhile({ key: keyOf(backupKind, backupId), modRevision });
  }
  // Concurrent drills of a service conflict.
  const { status } = archive.object;
  unit.update(archiveKind, archive, { ...archive.object, status: { ...status, requests: status.requests + 1 } });
  unit.create(operationKind, operation);
  unit.create(drillKind, drill);
  return drill;
}

/** The newest backup, and a random point in time of an engine that is restored to one. */
function restoresOf(
  service: ManagedServiceObject,
  newest: BackupObject,
  completed: BackupObject[],
  { index, liveArchive, upSince, random, newId }: DrillCreation,
): DrillRestore[] {
  const { databaseType } = service.spec;
  const first = { restoreId: newId(), backupId: newest.metadata.id, targetTime: null };
  if (engineOf(databaseType)?.backups?.byIdOnly === true) return [first];
  const archive = liveArchive(service.metadata.id);
  const { span, gaps } = restorableOf(databaseType, archive, completed);
  const point = span && pointWithin(span, gaps, upSince(service), random());
  if (point === undefined) return [first];
  const { backupId, targetTime } = choosePoint(point, databaseType, archive, completed);
  // All restores run on one machine with one engine version.
  const isOfVersion = index.get(backupId)?.object.spec.version === newest.spec.version;
  return targetTime === null || !isOfVersion ? [first] : [first, { restoreId: newId(), backupId, targetTime }];
}

/**
 * A point in time of the span, in milliseconds since 1970, chosen by a number from 0 to 1. The drill looks for
 * heartbeats before that time, so the engine must have run then: the time is after the engine's start, or the span's
 * end.
 */
export function pointWithin(
  { from, to }: TimeSpan,
  gaps: readonly TimeSpan[],
  upSince: number | undefined,
  random: number,
): number {
  const startMarginMs = 10_000;
  const lastGapEnd = gaps.at(-1)?.to ?? from;
  const begin = Math.max(from, lastGapEnd, upSince === undefined ? to : upSince + startMarginMs);
  return begin >= to ? to : Math.floor(begin + (to - begin) * random);
}
