import { create } from "@bufbuild/protobuf";
import { VerifyBackupResultSchema } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { TaskFailed } from "../task-failed.ts";
import type { TaskHandler } from "./task-handler.ts";

/** Ends when it has begun, as a backup does. */
export const verifyBackup: TaskHandler<"verifyBackup"> = {
  async run({ verificationId: id, backup, serviceId }, { backups, engine }) {
    const { instance } = await engine();
    if (backup?.key === undefined) throw new TaskFailed("invalid_task", "the task names no backup with a key");
    const place = { service: serviceId, backup: backup.backupId, attempt: backup.attempt };
    const { key, manifestSha256 } = backup;
    await backups.begin({ id, place, key, instance, work: { kind: "verify", manifestSha256 } });
    return create(VerifyBackupResultSchema);
  },
};
