import { MaintenanceService } from "@holdfast/proto/holdfast/admin/v1/maintenance_pb.ts";
import { casesOf, type Contract, ofPlatform, platformScoped } from "@holdfast/testing/contract/contract.ts";

export default {
  authorization: [
    casesOf(MaintenanceService, {
      listImages: ofPlatform,
      markImageUrgent: platformScoped(() => ({ image: "trixie-1", notice_hours: 1, reason: "stolen" })),
      unmarkImageUrgent: platformScoped(() => ({ image: "trixie-1" })),
      listMaintenance: ofPlatform,
    }),
  ],
  listBounds: {
    "holdfast.admin.v1.Image.engines": "the contents of an image",
    "holdfast.admin.v1.Image.missing_on": "20",
    "holdfast.admin.v1.Image.newest_of": "the contents of an image",
    "holdfast.admin.v1.ServiceMaintenance.update_ids": "an image and a restart",
  },
} satisfies Contract;
