import { create } from "@bufbuild/protobuf";
import { CancelBackupResultSchema } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import type { TaskHandler } from "./task-handler.ts";

export const cancelBackup: TaskHandler<"cancelBackup"> = {
  run: async ({ backupId }, { backups }) =>
    create(CancelBackupResultSchema, { backup: await backups.cancel(backupId) }),
};
