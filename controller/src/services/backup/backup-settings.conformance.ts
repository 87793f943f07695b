import { BackupService, type UpdateBackupSettingsRequestSchema } from "@holdfast/proto/holdfast/v1/backup_pb.ts";
import { casesOf, type Contract, objectScoped, ofService } from "@holdfast/testing/contract/contract.ts";
import { type SameInput, sameInputs, type sdk, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

export default {
  authorization: [
    casesOf(BackupService, {
      getBackupSettings: ofService,
      updateBackupSettings: objectScoped(({ serviceId }) => ({ service_id: serviceId, hour: 1 })),
    }),
  ],
  sdk: [
    sdkCalls(BackupService, {
      getBackupSettings: (c) => c.backups.settings("i"),
      updateBackupSettings: (c) => c.backups.updateSettings("i", { hour: 1, minute: 2, retention_days: 3 }),
    }),
  ],
  sdkInputs: sameInputs<{
    backupSettings: SameInput<sdk.BackupSettingsChange, typeof UpdateBackupSettingsRequestSchema>;
  }>(),
} satisfies Contract;
