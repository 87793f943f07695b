import { servicePrefix } from "@holdfast/common/backup/object-names.ts";
import { machineKind } from "#fleet/machine/machine.ts";
import { again, type Outcome, settled } from "#kernel/runtime/reconciler.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { archiveKind, type ArchiveObject, type DeletedService } from "./archive.ts";
import { backupKeyKind } from "./backup-key.ts";
import { hasEnded } from "./backup.ts";
import { deleteBelow } from "./stored-prefix.ts";
import { type ArchiveWorkDeps, heldMs, lookAgain } from "./archive-deps.ts";
import type { Expiry } from "./expiry.ts";

/** What stays of a service that is gone. */
export interface KeptArchives {
  /** What may come back stays for a while, manual backups until they are deleted. */
  outlive(archive: Stored<ArchiveObject>, signal: AbortSignal): Promise<Outcome>;
}

export function createKeptArchives(deps: ArchiveWorkDeps, expiry: Pick<Expiry, "endAll">): KeptArchives {
  const { archives, backups, backupKeys, index, objects, clock, log } = deps;
  const { endAll } = expiry;

  async function outlive(archive: Stored<ArchiveObject>, signal: AbortSignal): Promise<Outcome> {
    const { id, organizationId } = archive.object.metadata;
    await backups.reached(archive.modRevision, 1_000);
    const left = index.of(id).map(({ object }) => object);
    const { deleted } = archive.object.status;
    if (left.length === 0 && deleted === null) return forget(archive, signal);
    if (await isOrphan(organizationId, signal)) {
      if (deleted !== null) return endReturn(archive, deleted, signal);
      return endAll(archive, left.filter(hasEnded), signal);
    }
    const automated = left.filter((backup) => backup.spec.backupType === "automated" && hasEnded(backup));
    if (deleted === null) return endAll(archive, automated, signal);
    const leftMs = deleted.until - clock.now();
    if (leftMs > 0) return lookAgain([leftMs]);
    return deps.held() ? again(heldMs, "held") : endReturn(archive, deleted, signal);
  }

  /** From now on it cannot come back, and its machines go. */
  async function endReturn(
    archive: Stored<ArchiveObject>,
    { keptNodes = [] }: DeletedService,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const now = clock.now();
    const unit = deps.begin();
    const status = { ...archive.object.status, deleted: null };
    unit.update(archiveKind, archive, { ...archive.object, status });
    for (const id of keptNodes) {
      const machine = deps.machines.get(id) ?? (await deps.machines.fresh(id, signal));
      if (machine === undefined || machine.object.metadata.deletionRequestedAt !== undefined) continue;
      const { object } = machine;
      const metadata = { ...object.metadata, deletionRequestedAt: now, updatedAt: now };
      unit.update(machineKind, machine, { ...object, metadata });
    }
    await archives.reached(await unit.commit(signal), 1_000);
    return again(0, "it does not come back");
  }

  async function isOrphan(organizationId: string, signal: AbortSignal): Promise<boolean> {
    if (deps.organizations.get(organizationId) !== undefined) return false;
    return (await deps.organizations.fresh(organizationId, signal)) === undefined;
  }

  /** Nothing is left that anybody could restore. */
  async function forget(archive: Stored<ArchiveObject>, signal: AbortSignal): Promise<Outcome> {
    const { id } = archive.object.metadata;
    await deleteBelow(objects, servicePrefix(id), signal);
    const key = backupKeys.get(id);
    const unit = deps.begin();
    unit.remove(archiveKind, archive);
    if (key !== undefined) unit.remove(backupKeyKind, key);
    await archives.reached(await unit.commit(signal), 1_000);
    log.info("archive removed", { service: id });
    return settled;
  }

  return { outlive };
}
