import { ControlService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { casesOf, type Contract, ofPlatform, platform } from "@holdfast/testing/contract/contract.ts";

export default {
  authorization: [
    casesOf(ControlService, {
      listControllers: ofPlatform,
      listReconciles: ofPlatform,
      drainController: platform(({ controllerId }) => ({ controller_id: controllerId })),
      backupControlPlane: ofPlatform,
      listHolds: ofPlatform,
      placeHold: platform(() => ({ kind: "failover", reason: "a test" })),
      releaseHold: platform(() => ({ kind: "clock" })),
      listStores: ofPlatform,
      freeEtcdSpace: ofPlatform,
    }),
  ],
  listBounds: {
    "holdfast.admin.v1.ReconcilerStatus.failing_keys": "20, and the total number",
  },
} satisfies Contract;
