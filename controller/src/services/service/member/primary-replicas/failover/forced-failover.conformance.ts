import { FailoverService } from "@holdfast/proto/holdfast/admin/v1/failover_pb.ts";
import { casesOf, type Contract, platformScoped } from "@holdfast/testing/contract/contract.ts";

export default {
  authorization: [
    casesOf(FailoverService, {
      forceFailover: platformScoped(({ serviceId, machineId }) => ({
        service_id: serviceId,
        node_id: machineId,
        accept_loss: true,
      })),
    }),
  ],
  listBounds: {
    "holdfast.admin.v1.ForcedFailover.positions": "nodes of one service",
  },
} satisfies Contract;
