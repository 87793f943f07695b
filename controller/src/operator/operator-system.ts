import { inBackground } from "@holdfast/common/background.ts";
import { fleetPart } from "#fleet/fleet-system.ts";
import { taskKind } from "#fleet/task/task.ts";
import type { Use } from "#kernel/assembly.ts";
import type { Kernel } from "#kernel/kernel.ts";
import { createAuthorityRotation } from "#kernel/pki/authority-rotation-reconciler.ts";
import { createDrainRequests } from "#kernel/runtime/drain-requests.ts";
import type { System } from "#kernel/system.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import { managedServiceKind } from "#services/service/managed-service.ts";
import { createAuthorityApi } from "./authority/authority-api.ts";
import { createControlApi } from "./control/control-api.ts";
import { createFleetApi } from "./inventory/fleet-api.ts";
import { backUpControlPlane, createSnapshotReconciler } from "./recovery/snapshot.ts";

/**
 * Administration of the control plane: the admin API for operators (inventory/, control/, authority/), the rotation of
 * the certificate authority, and hourly snapshots of etcd and the history. recovery/main.ts restores a snapshot, or
 * recovers services from the object store, on the host while no controller runs.
 */
export const operatorSystem = declareSystem({
  name: "operator",
  audited: {
    "holdfast.admin.v1.FleetService": "machine",
    "holdfast.admin.v1.ControlService": "organization",
    "holdfast.admin.v1.AuthorityService": "organization",
  },
  open: openOperatorSystem,
});

function openOperatorSystem(kernel: Kernel, use: Use): System {
  const { fleet, machines, owners, orphans, outdatedCertificates } = use(fleetPart);
  const { collections, controllerRegistry, controllerId, log } = kernel;
  const tasks = collections.open(taskKind);
  const services = collections.open(managedServiceKind);
  const sessions = () => fleet.sessions();
  const drains = createDrainRequests(kernel.store);
  let draining: { close(): void } | undefined;
  return {
    name: "operator",
    rpcs: [
      createFleetApi({
        ...kernel,
        fleet,
        machines,
        owners,
        tasks,
        services,
        sessions,
        orphans,
        probeTransfer: fleet.probeTransfer,
      }),
      createControlApi({
        ...kernel,
        sessions,
        controllerReconcilers: fleet.controllerReconcilers,
        members: controllerRegistry.controllers,
        drain: drains.request,
        snapshot: (signal) => backUpControlPlane(kernel, signal),
      }),
      createAuthorityApi({ ...kernel, followers: outdatedCertificates }),
    ],
    work: [createAuthorityRotation({ ...kernel, followers: outdatedCertificates }), createSnapshotReconciler(kernel)],
    start() {
      // Draining moves keys and agents to other controllers; the API continues to serve.
      draining = drains.serve(controllerRegistry, () => {
        log.info("controller drains", { controller: controllerId });
        inBackground(log, "drain", controllerRegistry.drain());
      });
    },
    close: () => draining?.close(),
  };
}
