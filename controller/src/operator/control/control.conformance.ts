import { ControlService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { casesOf, type Contract, ofPlatform, platformScoped } from "@holdfast/testing/contract/contract.ts";

export default {
  authorization: [
    casesOf(ControlService, {
      listControllers: ofPlatform,
      listReconciles: ofPlatform,
      drainController: platformScoped(({ controllerId }) => ({ controller_id: controllerId })),
      backupControlPlane: ofPlatform,
      listHolds: ofPlatform,
      placeHold: platformScoped(() => ({ kind: "failover", reason: "a test" })),
      releaseHold: platformScoped(() => ({ kind: "clock" })),
      listStores: ofPlatform,
      freeEtcdSpace: ofPlatform,
    }),
  ],
  listBounds: {
    "holdfast.admin.v1.ReconcilerStatus.failing_keys": "20, and the total number",
  },
} satisfies Contract;
