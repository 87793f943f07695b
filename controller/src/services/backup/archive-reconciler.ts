import type { ManagedServiceObject } from "../service/managed-service.ts";
import { again, type Outcome, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { archiveKind, type ArchiveObject, newArchive } from "./archive.ts";
import { dueBackup, firstDueAt } from "./archive-plan.ts";
import { isOutgrownOnTrial, withSource } from "./archive-source.ts";
import { createBackupDesk } from "./backup-desk.ts";
import { nextBase } from "./backup-chain.ts";
import { hasBackups } from "./service-backups.ts";
import { type ArchiveWorkDeps, lookAgain } from "./archive-deps.ts";
import { hasEnded } from "./backup.ts";
import { createExpiry } from "./expiry.ts";
import { createKeptArchives } from "./kept-archive.ts";
import { createLogKeeping } from "./log-keeping.ts";

const logEveryMs = 30_000;
/** While the service is being deleted, or its data upgraded: what its machine told last is all that will be known. */
const lastLogEveryMs = 1_000;

/** Takes the backups that are due, ends those whose time is over, renews keys. Key: service id. */
export function createArchiveWork(deps: ArchiveWorkDeps): ControlLoop {
  const { archives, backups, backupKeys, index, services, clock, log } = deps;
  const desk = createBackupDesk(deps);
  const logs = createLogKeeping(deps);
  const expiry = createExpiry(deps);
  const kept = createKeptArchives(deps, expiry);
  const all = (id: string) => index.of(id).map(({ object }) => object);

  async function reconcile(id: string, signal: AbortSignal): Promise<Outcome> {
    const service = services.get(id)?.object;
    const archive = archives.get(id);
    if (service !== undefined) return keep(service, archive, signal);
    if (archive === undefined) return settled;
    // Memory may be behind: only the store says that a service is gone, and what may come back of it. In this order: whatever
    // brings the service back afterwards changes the archive too.
    const fresh = await archives.fresh(id, signal);
    if ((await services.fresh(id, signal)) !== undefined) return again(1_000, "memory is behind");
    return fresh === undefined ? settled : kept.outlive(fresh, signal);
  }

  async function keep(
    service: ManagedServiceObject,
    archive: Stored<ArchiveObject> | undefined,
    signal: AbortSignal,
  ): Promise<Outcome> {
    if (!hasBackups(service)) return settled;
    const { id } = service.metadata;
    const now = clock.now();
    if (archive === undefined) {
      const isUp = service.status.state === "Running" && service.status.operationId === null;
      const isFinal = service.metadata.deletionRequestedAt !== undefined && service.spec.finalBackup === "wanted";
      if (!isUp && !isFinal) return settled;
      const unit = deps.begin();
      unit.create(archiveKind, newArchive(service, firstDueAt(service, deps.firstBackupAfterMs, now), now));
      await archives.reached(await unit.commit(signal), 1_000);
      return again(0, "archive made");
    }
    const sourced = withSource(archive.object, service, now);
    if (sourced !== undefined) {
      const unit = deps.begin();
      unit.update(archiveKind, archive, sourced);
      await archives.reached(await unit.commit(signal), 1_000);
      return again(0, "source noted");
    }
    await Promise.all([backups.reached(archive.modRevision, 1_000), backupKeys.reached(archive.modRevision, 1_000)]);
    const logged = await logs.keep(service, archive, signal);
    if (logged !== undefined) return logged;
    const due = dueBackup(service, archive.object, all(id), { now, finalBackupWithinMs: deps.finalBackupWithinMs });
    const waiting =
      due.kind === "now"
        ? await logs.awaited(service, archive, due.trigger, signal)
        : await requestAwaits(service, archive, signal);
    if (waiting !== undefined) return waiting;
    if (due.kind === "now") {
      const unit = deps.begin();
      const base = due.trigger === "schedule" ? nextBase(service, archive.object, all(id), now) : undefined;
      const asked = {
        backupType: "automated",
        trigger: due.trigger,
        ...(base && { baseId: base.metadata.id }),
      } as const;
      const { backup } = desk.add(unit, service, asked);
      await archives.reached(await unit.commit(signal), 1_000);
      log.info("backup due", { service: id, backup: backup.metadata.id, trigger: due.trigger });
      return again(0, "backup made");
    }
    const next = [await expiry.expire(archive, signal), await expiry.renewKey(id, signal)];
    if (due.kind === "at") next.push(due.at - now);
    const endsSoon = service.metadata.deletionRequestedAt !== undefined || isOutgrownOnTrial(archive.object, service);
    if (archive.object.spec.log !== null) next.push(endsSoon ? lastLogEveryMs : logEveryMs);
    return lookAgain(next);
  }

  /** The log goes on from what a user asked for, too, before the first backup that is due by itself. */
  async function requestAwaits(
    service: ManagedServiceObject,
    archive: Stored<ArchiveObject>,
    signal: AbortSignal,
  ): Promise<Outcome | undefined> {
    if (archive.object.spec.log !== null) return undefined;
    const asked = all(service.metadata.id).find((backup) => backup.spec.trigger === "request" && !hasEnded(backup));
    return asked === undefined ? undefined : logs.awaited(service, archive, asked.spec.trigger, signal);
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
        services.subscribe(onChange),
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
