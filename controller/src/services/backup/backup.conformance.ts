import { BackupService, type ListBackupsRequestSchema } from "@holdfast/proto/holdfast/v1/backup_pb.ts";
import { casesOf, type Contract, objectScoped, ofService } from "@holdfast/testing/contract/contract.ts";
import { page, type SameInput, sameInputs, type sdk, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

type BackupStatus = "pending" | "running" | "verifying" | "completed" | "failed";

declare module "@holdfast/testing/api/rest-types.ts" {
  interface KnownTexts {
    readonly "holdfast.v1.ListBackupsRequest": { readonly status: BackupStatus | Capitalize<BackupStatus> };
  }
}

declare module "@holdfast/testing/contract/contract.ts" {
  interface Existing {
    readonly backupId: string;
  }
}

const backup = objectScoped(({ serviceId, backupId }) => ({ service_id: serviceId, backup_id: backupId }));

export default {
  authorization: [
    casesOf(BackupService, {
      listBackups: ofService,
      createBackup: ofService,
      getBackup: backup,
      deleteBackup: backup,
      verifyBackup: backup,
      cancelBackup: backup,
      rotateBackupKey: ofService,
    }),
  ],
  existing: async ({ make, existing }) => ({
    backupId: (await make(`/managed-services/${existing.serviceId}/backups`, {})).id,
  }),
  sdk: [
    sdkCalls(BackupService, {
      listBackups: (c) => c.backups.list("i", { type: "manual", status: "Completed" }, page),
      createBackup: (c) => c.backups.create("i"),
      getBackup: (c) => c.backups.get("i", "b"),
      deleteBackup: (c) => c.backups.delete("i", "b"),
      verifyBackup: (c) => c.backups.verify("i", "b"),
      cancelBackup: (c) => c.backups.cancel("i", "b"),
      rotateBackupKey: (c) => c.backups.rotateKey("i"),
    }),
  ],
  sdkInputs: sameInputs<{
    backupFilter: SameInput<sdk.BackupFilter, typeof ListBackupsRequestSchema>;
  }>(),
  kindBounds: {
    archive: "one a service",
    "backup-key": "one a service",
    "service-description": "one a service",
  },
} satisfies Contract;
