import { BackupService } from "@holdfast/proto/holdfast/admin/v1/backup_pb.ts";
import { casesOf, type Contract, ofPlatform, platformScoped } from "@holdfast/testing/contract/contract.ts";

export default {
  authorization: [
    casesOf(BackupService, {
      listArchives: ofPlatform,
      listLogRanges: platformScoped(({ serviceId }) => ({ service_id: serviceId })),
      listUploads: ofPlatform,
      listExpiry: ofPlatform,
    }),
  ],
} satisfies Contract;
