import { type CatalogData, planOf } from "#catalog/catalog.ts";
import type { MachineObject, MachineSpecObject } from "#fleet/machine/machine.ts";
import { newMetadata } from "#kernel/store/resource.ts";
import type { ManagedServiceObject, NodeSpec } from "./managed-service.ts";
import { serverNamesOf } from "./service-names.ts";
import { machineSizeOf } from "../scaling/service-size.ts";

/** Pure: what a node's machine must be. */
export function machineSpecOf(service: ManagedServiceObject, node: NodeSpec, catalog: CatalogData): MachineSpecObject {
  const plan = planOf(catalog, service.spec.planName);
  const { guestKernel, machineStarts } = service.spec;
  return {
    owner: { kind: "managed-service", id: service.metadata.id },
    // What is not said is a container, for those that were made before there was a choice.
    ...(plan.kind === "virtual_machine" && { kind: plan.kind, ...(guestKernel !== undefined && { guestKernel }) }),
    engine: service.spec.databaseType,
    version: service.spec.version,
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

/** Pure: a machine that is still to be made, for a node that no waiting one was there for. */
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

/** Pure: the new service with its primary on this machine. */
export function placedOn(service: ManagedServiceObject, machineId: string): ManagedServiceObject {
  const { spec, status } = service;
  const placed = <N extends { readonly id: string }>(node: N): N =>
    node.id === status.primaryNodeId ? { ...node, id: machineId } : node;
  return {
    ...service,
    spec: { ...spec, nodes: spec.nodes.map(placed) },
    status: { ...status, primaryNodeId: machineId, nodes: status.nodes.map(placed) },
  };
}
