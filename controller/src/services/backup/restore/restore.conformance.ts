import { BackupService, type RestoreBackupRequestSchema } from "@holdfast/proto/holdfast/v1/backup_pb.ts";
import { casesOf, type Contract, objectScoped, ofService } from "@holdfast/testing/contract/contract.ts";
import { type SameInput, sameInputs, type sdk, sdkCalls, time } from "@holdfast/testing/contract/sdk-calls.ts";

const target = { name: "n", target_service_name: "m", plan_name: "p", zone: "z", storage_size_gb: 2, node_count: 2 };

export default {
  authorization: [
    casesOf(BackupService, {
      restoreToPoint: objectScoped(({ serviceId }) => ({
        service_id: serviceId,
        restore_point: "2026-01-01T00:00:00Z",
        target_service_name: "stolen",
      })),
      restoreBackup: objectScoped(({ serviceId, backupId }) => ({
        service_id: serviceId,
        backup_id: backupId,
        target_service_name: "stolen",
      })),
      forkManagedService: objectScoped(({ serviceId }) => ({ service_id: serviceId, name: "stolen" })),
      undeleteManagedService: ofService,
    }),
  ],
  sdk: [
    sdkCalls(BackupService, {
      restoreToPoint: (c) => c.backups.restoreTo("i", time, target),
      restoreBackup: (c) => c.backups.restore("i", "b", target),
      forkManagedService: (c) => c.services.fork("i", "n", { backupId: "b", nodeCount: 2 }),
      undeleteManagedService: (c) => c.services.undelete("i", { name: "n" }),
    }),
  ],
  sdkInputs: sameInputs<{
    restoreChoice: SameInput<sdk.RestoreChoice & { backup_id: string }, typeof RestoreBackupRequestSchema>;
  }>(),
} satisfies Contract;
