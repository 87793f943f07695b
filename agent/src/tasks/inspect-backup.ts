import { create } from "@bufbuild/protobuf";
import { InspectBackupResultSchema } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import type { TaskHandler } from "./task-handler.ts";

export const inspectBackup: TaskHandler<"inspectBackup"> = {
  run: async ({ backupId }, { backups }) => create(InspectBackupResultSchema, { backup: backups.inspect(backupId) }),
};
