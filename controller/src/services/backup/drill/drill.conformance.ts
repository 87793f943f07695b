import { BackupService } from "@holdfast/proto/holdfast/v1/backup_pb.ts";
import { casesOf, type Contract, ofService } from "@holdfast/testing/contract/contract.ts";
import { page, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

export default {
  authorization: [
    casesOf(BackupService, {
      drillBackups: ofService,
      listDrills: ofService,
    }),
  ],
  sdk: [
    sdkCalls(BackupService, {
      drillBackups: (c) => c.backups.drill("i"),
      listDrills: (c) => c.backups.drills("i", page),
    }),
  ],
  listBounds: {
    "holdfast.v1.Drill.checks": "checks of two restores",
  },
  kindBounds: {
    drill: "the newest of a service",
  },
} satisfies Contract;
