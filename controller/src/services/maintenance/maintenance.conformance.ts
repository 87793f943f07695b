import { MaintenanceService } from "@holdfast/proto/holdfast/v1/maintenance_pb.ts";
import { casesOf, type Contract, ofService } from "@holdfast/testing/contract/contract.ts";
import { sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

export default {
  authorization: [
    casesOf(MaintenanceService, {
      getMaintenance: ofService,
      applyMaintenance: ofService,
      upgradeManagedService: ofService,
    }),
  ],
  sdk: [
    sdkCalls(MaintenanceService, {
      getMaintenance: (c) => c.services.maintenance("i"),
      upgradeManagedService: (c) => c.services.upgrade("i", "9", true, true),
      applyMaintenance: (c) => c.services.applyMaintenance("i", ["u"], { acceptTextOrderChange: true }),
    }),
  ],
  listBounds: {
    "holdfast.v1.Maintenance.updates": "an image and a restart",
    "holdfast.v1.Upgrade.findings": "one of each kind, and one for each parameter of the service",
  },
  kindBounds: {
    "maintenance-brake": "one an image",
    "node-image": "operators",
  },
} satisfies Contract;
