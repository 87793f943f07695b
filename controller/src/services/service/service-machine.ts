import { type CatalogData, planOf } from "#catalog/catalog.ts";
import type { MachineObject, MachineSpecObject } from "#fleet/machine/machine.ts";
import { newMetadata } from "#kernel/store/resource.ts";
import type { ManagedServiceObject, NodeSpec } from "./managed-service.ts";
import { serverNamesOf } from "./network/service-names.ts";
import { machineSizeOf } from "../scaling/service-size.ts";

/** Desired state of a node's machine. */
export function machineSpecOf(service: ManagedServiceObject, node: NodeSpec, catalog: CatalogData): MachineSpecObject {
  const plan = planOf(catalog, service.spec.planName);
  const { guestKernel, machineStarts } = service.spec;
  return {
    owner: { kind: "managed-service", id: service.metadata.id },
    // A container is the default, so containers have no `kind`.
    ...(plan.kind === "virtual_machine" && { kind: plan.kind, ...(guestKernel !== undefined && { guestKernel }) }),
    software: { name: service.spec.databaseType, version: service.spec.version },
    image: service.spec.image,
    ...(machineStarts !== undefined && { machineStarts }),
    ...machineSizeOf(service.spec, catalog),
    zone: node.zone,
    hostId: null,
    storageTier: service.spec.storageTier,
    apart: "preferred",
    power: service.spec.power,
    serverNames: serverNamesOf(service, node),
  };
}

/** A machine to create for a node, if the warm pool had none. */
export function newMachine(
  service: ManagedServiceObject,
  node: NodeSpec,
  catalog: CatalogData,
  now: number,
): MachineObject {
  const { organizationId } = service.metadata;
  return {
    metadata: newMetadata(node.id, now, { name: node.hostname, organizationId }),
    spec: machineSpecOf(service, node, catalog),
    status: { state: "pending", reason: "", address: "", publicAddress: "", enrollment: null, certificate: null },
  };
}
