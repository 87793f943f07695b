import { create } from "@bufbuild/protobuf";
import { StartBackupResultSchema } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { storedBackup } from "../backup/restores.ts";
import { TaskFailed } from "../task-failed.ts";
import type { BackupFacet } from "../engines/backup-facet.ts";
import type { Instance } from "../engines/instance.ts";
import type { TaskContext, TaskHandler } from "./task-handler.ts";

/** Ends when it has begun: what comes of it is observed. */
export const startBackup: TaskHandler<"startBackup"> = {
  async run({ backupId: id, attempt, kind, key, background, base: since, pageMap, isLast }, context) {
    const { backups } = context;
    const { driver, instance } = await context.engine();
    if (driver.backup === undefined) throw new TaskFailed("not_supported", `${driver.engine} has no backups`);
    const isIncrement = kind === "incremental" && driver.backup.pages !== undefined && since !== undefined;
    if (!isIncrement && kind !== driver.backup.kind)
      throw new TaskFailed("not_supported", `${driver.engine} has no backup of kind ${kind}`);
    if (key === undefined) throw new TaskFailed("invalid_task", "the task has no key");
    if (isLast) {
      await withoutClients(driver.backup, instance, context);
      await context.endChanges();
    }
    const place = { service: instance.spec.serviceId, backup: id, attempt };
    const base = isIncrement ? storedBackup(place.service, since) : undefined;
    await backups.begin({ id, place, key, instance, work: { kind: "backup", background, base, pageMap } });
    return create(StartBackupResultSchema);
  },
};

/** Resolves when nobody can write any more; throws "not_ready" while somebody may. */
async function withoutClients(facet: BackupFacet, instance: Instance, context: TaskContext): Promise<void> {
  const { spec } = instance;
  const admits = spec.allowedCidrs.length > 0 || spec.platformAccess.length > 0;
  const patience = AbortSignal.any([context.signal, AbortSignal.timeout(context.withinMs)]);
  const isFree =
    !admits &&
    (await facet.untilNoClients(instance, patience).then(
      () => true,
      () => false,
    ));
  if (!isFree) throw new TaskFailed("not_ready", "clients are still connected", { retryable: true });
}
