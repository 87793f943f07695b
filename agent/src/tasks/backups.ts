import { create } from "@bufbuild/protobuf";
import { CancelBackupResultSchema, StartBackupResultSchema } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { storedBackup } from "../backup/restores.ts";
import type { BackupFacet } from "../engines/backup-facet.ts";
import type { Instance } from "../engines/instance.ts";
import { TaskFailed } from "../task-failed.ts";
import { engineFacetOf, type TaskContext, type TaskHandler } from "./task-handler.ts";

/** Ends once the backup has started. Its progress and outcome are observed. */
export const startBackup: TaskHandler<"startBackup"> = {
  async run({ backupId: id, attempt, kind, key, background, base: since, pageMap, isLast }, context) {
    const { backups } = engineFacetOf(context);
    const { driver, instance } = await context.engine();
    if (driver.backup === undefined) throw new TaskFailed("not_supported", `${driver.engine} has no backups.`);
    const isIncrement = kind === "incremental" && driver.backup.pages !== undefined && since !== undefined;
    if (!isIncrement && kind !== driver.backup.kind)
      throw new TaskFailed("not_supported", `${driver.engine} has no backups of the kind ${kind}.`);
    if (key === undefined) throw new TaskFailed("invalid_task", "The task has no key.");
    if (isLast) {
      await requireNoClients(driver.backup, instance, context);
      await context.endChanges();
    }
    const location = { service: instance.spec.serviceId, backup: id, attempt };
    const base = isIncrement ? storedBackup(location.service, since) : undefined;
    await backups.start({ location, key, instance, background, base, pageMap });
    return create(StartBackupResultSchema);
  },
};

export const cancelBackup: TaskHandler<"cancelBackup"> = {
  run: async ({ backupId }, context) =>
    create(CancelBackupResultSchema, { backup: await engineFacetOf(context).backups.cancel(backupId) }),
};

/** Resolves once no client can write any more; throws "not_ready" while one is admitted or connected. */
async function requireNoClients(facet: BackupFacet, instance: Instance, context: TaskContext): Promise<void> {
  const { spec } = instance;
  const admits = spec.allowedCidrs.length > 0 || spec.platformAccess.length > 0;
  const limit = AbortSignal.any([context.signal, AbortSignal.timeout(context.withinMs)]);
  const isFree =
    !admits &&
    (await facet.untilNoClients(instance, limit).then(
      () => true,
      () => false,
    ));
  if (!isFree) throw new TaskFailed("not_ready", "Clients are still connected.", { retryable: true });
}
