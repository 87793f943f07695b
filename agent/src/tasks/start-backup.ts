import { create } from "@bufbuild/protobuf";
import { StartBackupResultSchema } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { storedBackup } from "../backup/restores.ts";
import { TaskFailed } from "../task-failed.ts";
import type { TaskHandler } from "./task-handler.ts";

/** Ends when it has begun: what comes of it is observed. */
export const startBackup: TaskHandler<"startBackup"> = {
  async run({ backupId: id, attempt, kind, key, background, base: since, pageMap }, { backups, engine }) {
    const { driver, instance } = await engine();
    if (driver.backup === undefined) throw new TaskFailed("not_supported", `${driver.engine} has no backups`);
    const isIncrement = kind === "incremental" && driver.backup.pages !== undefined && since !== undefined;
    if (!isIncrement && kind !== driver.backup.kind)
      throw new TaskFailed("not_supported", `${driver.engine} has no backup of kind ${kind}`);
    if (key === undefined) throw new TaskFailed("invalid_task", "the task has no key");
    const place = { service: instance.spec.serviceId, backup: id, attempt };
    const base = isIncrement ? storedBackup(place.service, since) : undefined;
    await backups.begin({ id, place, key, instance, work: { kind: "backup", background, base, pageMap } });
    return create(StartBackupResultSchema);
  },
};
