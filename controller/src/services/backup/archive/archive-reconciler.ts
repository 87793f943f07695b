import type { ManagedServiceObject } from "../../service/managed-service.ts";
import { again, type ReconcileOutcome, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { archiveKind, type ArchiveObject, newArchive } from "./archive.ts";
import { dueBackup, firstDueAt } from "./archive-plan.ts";
import { awaitsUpgradeOutcome, withSource } from "./archive-source.ts";
import { planSizeOf } from "#catalog/catalog.ts";
import { logSettings } from "../../configuration/replica-minimums.ts";
import { taskTarget } from "../../service/member/member-roles.ts";
import { withSettings } from "../log/lowered-settings.ts";
import { newBackup } from "../backup-creation.ts";
import { nextBase } from "../backup-chain.ts";
import { hasBackups } from "../service-backups.ts";
import { type ArchiveWorkDeps, recheckAfter } from "./archive-deps.ts";
import { hasEnded } from "../backup.ts";
import { createBackupExpiry } from "./backup-expiry.ts";
import { createReportedDamage } from "../log/reported-damage.ts";
import { createRetainedArchives } from "./retained-archive.ts";
import { createArchivedLogs } from "../log/archived-logs.ts";

const logCheckIntervalMs = 30_000;
/**
 * Interval while the service is being deleted or its data upgraded: its machine or engine is about to be replaced, so
 * the last report of the log must be recorded first.
 */
const finalLogCheckIntervalMs = 1_000;

/**
 * Archives: creates automated backups that are due, deletes expired ones, rotates keys and records the archived log.
 * Key: service id.
 *
 * Each service with backups has one archive (`archive.ts`). `archive-plan.ts` decides when a backup is due,
 * `../log/archived-logs.ts` starts the log's archive and records its ranges, `backup-expiry.ts` deletes expired backups
 * and rotates keys, and `retained-archive.ts` handles the archives of deleted services. The backups themselves are
 * taken by `../backup-reconciler.ts`.
 */
export function createArchiveWork(deps: ArchiveWorkDeps): ControlLoop {
  const { archives, backups, backupKeys, index, services, clock, log } = deps;
  const logs = createArchivedLogs(deps);
  const expiry = createBackupExpiry(deps);
  const retained = createRetainedArchives(deps, expiry);
  const damage = createReportedDamage(deps);
  const all = (id: string) => index.of(id).map(({ object }) => object);

  async function reconcile(id: string, signal: AbortSignal): Promise<ReconcileOutcome> {
    const service = services.get(id)?.object;
    const archive = archives.get(id);
    if (service !== undefined) return maintain(service, archive, signal);
    if (archive === undefined) return settled;
    // Memory may be stale: only the store proves that a service was deleted. The archive is read first, because an
    // undelete writes both.
    const fresh = await archives.getCurrent(id, signal);
    if ((await services.getCurrent(id, signal)) !== undefined) return again(1_000, "memory is stale");
    if (fresh === undefined) return settled;
    return (await damage.record(fresh, signal)) ?? retained.reconcileDeleted(fresh, signal);
  }

  async function maintain(
    service: ManagedServiceObject,
    archive: Stored<ArchiveObject> | undefined,
    signal: AbortSignal,
  ): Promise<ReconcileOutcome> {
    if (!hasBackups(service)) return settled;
    const { id } = service.metadata;
    const now = clock.now();
    if (archive === undefined) {
      const isUp = service.status.state === "Running" && service.status.operationId === null;
      const isFinal = service.metadata.deletionRequestedAt !== undefined && service.spec.finalBackup === "wanted";
      if (!isUp && !isFinal) return settled;
      const unit = deps.begin();
      unit.create(archiveKind, newArchive(service, firstDueAt(service, deps.firstBackupDelayMs, now), now));
      await archives.untilRevision(await unit.commit(signal), 1_000);
      return again(0, "archive created");
    }
    const withNewSource = withSource(archive.object, service, now);
    if (withNewSource !== undefined) {
      const unit = deps.begin();
      unit.update(archiveKind, archive, withNewSource);
      await archives.untilRevision(await unit.commit(signal), 1_000);
      return again(0, "source recorded");
    }
    const { instance } = deps.fleet.observation(taskTarget(service).id) ?? {};
    const withNewSettings = withSettings(archive.object, logSettings(service.spec, instance), now);
    if (withNewSettings !== undefined) {
      const unit = deps.begin();
      unit.update(archiveKind, archive, withNewSettings);
      await archives.untilRevision(await unit.commit(signal), 1_000);
      return again(0, "settings recorded");
    }
    await Promise.all([
      backups.untilRevision(archive.modRevision, 1_000),
      backupKeys.untilRevision(archive.modRevision, 1_000),
    ]);
    const damaged = await damage.record(archive, signal);
    if (damaged !== undefined) return damaged;
    const logged = await logs.maintain(service, archive, signal);
    if (logged !== undefined) return logged;
    const { finalBackupTimeoutMs } = deps;
    const plan = planSizeOf(deps.catalog, service.spec.planName, service.spec.storageSizeGb);
    const due = dueBackup(service, archive.object, all(id), { now, finalBackupTimeoutMs, plan });
    const waiting =
      due.kind === "now"
        ? await logs.awaitFollowed(service, archive, due.trigger, signal)
        : await awaitLogForRequest(service, archive, signal);
    if (waiting !== undefined) return waiting;
    if (due.kind === "now") {
      const unit = deps.begin();
      const base = due.trigger === "schedule" ? nextBase(service, archive.object, all(id), now) : undefined;
      const request = {
        backupType: "automated",
        trigger: due.trigger,
        ...(base && { baseId: base.metadata.id }),
      } as const;
      const { backup } = newBackup(unit, service, request, deps);
      await archives.untilRevision(await unit.commit(signal), 1_000);
      log.info("automated backup created", { service: id, backup: backup.metadata.id, trigger: due.trigger });
      return again(0, "backup created");
    }
    const next = [await expiry.expire(archive, signal), await expiry.rotateKey(id, signal)];
    if (due.kind === "at") next.push(due.at - now);
    const endsSoon =
      service.metadata.deletionRequestedAt !== undefined || awaitsUpgradeOutcome(archive.object, service);
    if (archive.object.spec.log !== null) next.push(endsSoon ? finalLogCheckIntervalMs : logCheckIntervalMs);
    return recheckAfter(next);
  }

  /** A manual backup before the first automated one also starts the log's archive, so that its log can be replayed. */
  async function awaitLogForRequest(
    service: ManagedServiceObject,
    archive: Stored<ArchiveObject>,
    signal: AbortSignal,
  ): Promise<ReconcileOutcome | undefined> {
    if (archive.object.spec.log !== null) return undefined;
    const request = all(service.metadata.id).find((backup) => backup.spec.trigger === "request" && !hasEnded(backup));
    return request === undefined ? undefined : logs.awaitFollowed(service, archive, request.spec.trigger, signal);
  }

  return {
    reconciler: { name: "archive", reconcile },
    *keys() {
      for (const { object } of services.values()) if (hasBackups(object)) yield object.metadata.id;
      for (const { object } of archives.values())
        if (services.get(object.metadata.id) === undefined) yield object.metadata.id;
    },
    inputs: (id) => `${services.get(id)?.modRevision ?? 0} ${archives.get(id)?.modRevision ?? 0}`,
    subscribe(onChange) {
      const watches = [
        services.subscribe((id, before) => {
          onChange(id);
          // A restore that completes or fails may have found damage in its source.
          const { serviceId } = services.get(id)?.object.spec.origin ?? before?.spec.origin ?? {};
          if (serviceId !== undefined && serviceId !== id) onChange(serviceId);
        }),
        deps.drills.subscribe((id, before) => {
          const { serviceId } = deps.drills.get(id)?.object.spec ?? before?.spec ?? {};
          if (serviceId !== undefined) onChange(serviceId);
        }),
        archives.subscribe(onChange),
        backups.subscribe((id, before) => {
          const { serviceId } = backups.get(id)?.object.spec ?? before?.spec ?? {};
          if (serviceId !== undefined) onChange(serviceId);
        }),
      ];
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },
  };
}
