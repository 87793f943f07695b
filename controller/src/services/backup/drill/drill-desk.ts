import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { newOperation, operationKind, type OperationObject } from "#operation/operation.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { ManagedServiceObject } from "../../service/managed-service.ts";
import { serviceSubject } from "../../service/managed-service.ts";
import { archiveKind, type ArchiveObject, sourceOf } from "../archive.ts";
import { basesOf } from "../backup-chain.ts";
import type { BackupIndex } from "../backup-index.ts";
import { sourceIn } from "../backup-version.ts";
import { backupKind, type BackupObject, isShown } from "../backup.ts";
import { choosePoint } from "../restore-point.ts";
import { restorableOf } from "../restorable.ts";
import type { TimeSpan } from "../archive.ts";
import type { DrillIndex } from "./drill-index.ts";
import { drillKind, type DrillObject, type DrillRestore, type DrillSpec, isOver, newDrill } from "./drill.ts";

export interface DrillDeskDeps {
  readonly archives: Pick<Collection<ArchiveObject>, "get">;
  readonly index: BackupIndex;
  readonly drillIndex: DrillIndex;
  readonly liveArchive: (serviceId: string) => ArchiveObject | undefined;
  /** Since when the service's engine runs without a pause, by its machine; undefined while it does not. */
  readonly upSince: (service: ManagedServiceObject) => number | undefined;
  readonly random: () => number;
  readonly newId: () => string;
  readonly clock: Clock;
}

/** The only way to a new drill, whoever wants it. */
export interface DrillDesk {
  /**
   * Adds a drill and its operation to the unit of work. Throws WRONG_STATE without a completed backup, and OPERATION_IN_PROGRESS
   * while another drill of the service goes on.
   */
  add(unit: UnitOfWork, service: ManagedServiceObject, trigger: DrillSpec["trigger"]): DrillObject;
}

export function createDrillDesk(deps: DrillDeskDeps): DrillDesk {
  const { index, newId, clock } = deps;

  function restoresOf(service: ManagedServiceObject, newest: BackupObject, completed: BackupObject[]): DrillRestore[] {
    const { id } = service.metadata;
    const { databaseType } = service.spec;
    const first = { restoreId: newId(), backupId: newest.metadata.id, targetTime: null };
    const archive = deps.liveArchive(id);
    const { span, gaps } = restorableOf(databaseType, archive, completed);
    const point = span && pointWithin(span, gaps, deps.upSince(service), deps.random());
    if (point === undefined) return [first];
    const { backupId, targetTime } = choosePoint(point, databaseType, archive, completed, clock.now());
    // One machine does all of it, with one version of the engine.
    const isOfVersion = index.get(backupId)?.object.spec.version === newest.spec.version;
    return targetTime === null || !isOfVersion ? [first] : [first, { restoreId: newId(), backupId, targetTime }];
  }

  return {
    add(unit, service, trigger) {
      const { id: serviceId, organizationId } = service.metadata;
      if (deps.drillIndex.of(serviceId).some((drill) => !isOver(drill)))
        throw new HoldfastError("OPERATION_IN_PROGRESS", "A drill of the service goes on already.");
      const isThere = (backup: BackupObject) => isShown(backup) && backup.status.state === "completed";
      const completed = index.of(serviceId).flatMap(({ object }) => (isThere(object) ? [object] : []));
      const newest = completed.at(-1);
      if (newest === undefined) throw new HoldfastError("WRONG_STATE", "The service has no completed backup yet.");
      const archive = deps.archives.get(serviceId);
      if (archive === undefined) throw new HoldfastError("WRONG_STATE", "The service has no completed backup yet.");
      const now = clock.now();
      const restores = restoresOf(service, newest, completed);
      const operation: OperationObject = newOperation({
        id: newId(),
        subject: serviceSubject(serviceId),
        organizationId,
        type: "drill",
        now,
      });
      const operationId = operation.metadata.id;
      const spec = {
        serviceId,
        trigger,
        operationId,
        source: sourceIn(newest.spec.version, sourceOf(service)),
        restores,
      };
      const drill = newDrill(newId(), organizationId, spec, now);
      // What is read is not deleted in the same moment.
      const get = (id: string) => index.get(id)?.object;
      const read = restores.flatMap((restore) => get(restore.backupId) ?? []);
      for (const backupId of new Set([...read.map(({ metadata }) => metadata.id), ...basesOf(read, get)])) {
        const modRevision = index.get(backupId)?.modRevision;
        if (modRevision !== undefined) unit.onlyWhile({ key: keyOf(backupKind, backupId), modRevision });
      }
      // Two that want one at the same time collide.
      const { status } = archive.object;
      unit.update(archiveKind, archive, { ...archive.object, status: { ...status, requests: status.requests + 1 } });
      unit.create(operationKind, operation);
      unit.create(drillKind, drill);
      return drill;
    },
  };
}

/**
 * Pure: a moment of the span, by a number from 0 to 1. Heartbeats are looked for just before it, so the engine must have run then:
 * the span is that since its start, or its end alone.
 */
export function pointWithin(
  { from, to }: TimeSpan,
  gaps: readonly TimeSpan[],
  upSince: number | undefined,
  random: number,
): number {
  const settledMs = 10_000;
  const lastGapEnd = gaps.at(-1)?.to ?? from;
  const begin = Math.max(from, lastGapEnd, upSince === undefined ? to : upSince + settledMs);
  return begin >= to ? to : Math.floor(begin + (to - begin) * random);
}
