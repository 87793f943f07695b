import { FleetService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { casesOf, type Contract, ofPlatform, platformScoped } from "@holdfast/testing/contract/contract.ts";

export default {
  authorization: [
    casesOf(FleetService, {
      listMachines: ofPlatform,
      listTasks: ofPlatform,
      listSessions: ofPlatform,
      listTerms: ofPlatform,
      listPrimaryLeases: ofPlatform,
      listRights: ofPlatform,
      sweepOrphans: ofPlatform,
      probeTransfer: platformScoped(({ machineId }) => ({ machine_id: machineId, size_bytes: "10" })),
    }),
  ],
} satisfies Contract;
