import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { ofOrganization } from "#kernel/store/of-organization.ts";
import type { Origin } from "./export-item.ts";
import { exportsOfPlace, type MetricsExportObject, placeName } from "./metrics-export.ts";

/** A machine that an integration exports from. */
export interface MachineTarget {
  readonly machineId: string;
  readonly service: ManagedServiceObject;
  readonly origin: Origin;
  readonly role: "primary" | "replica";
}

export interface ExportTargets {
  /** Machines of the nodes of its services. */
  readonly machines: readonly MachineTarget[];
  readonly services: ReadonlyMap<string, ManagedServiceObject>;
  /** Services of the organization whose own integration of the type takes the place of this one. */
  readonly elsewhere: readonly ManagedServiceObject[];
}

/** Answers what an integration exports from now. An origin is one object for as long as its service stays as it is. */
export function createExportTargets(deps: {
  readonly services: Pick<Collection<ManagedServiceObject>, "get" | "page">;
  readonly exports: Pick<Collection<MetricsExportObject>, "by">;
}): (integration: MetricsExportObject) => ExportTargets {
  const known = new WeakMap<ManagedServiceObject, readonly MachineTarget[]>();

  function machinesOf(service: ManagedServiceObject): readonly MachineTarget[] {
    const before = known.get(service);
    if (before !== undefined) return before;
    const machines = service.spec.nodes.map(({ id }) => machineTarget(service, id));
    known.set(service, machines);
    return machines;
  }

  function hasOwn(service: ManagedServiceObject, { metadata, spec }: MetricsExportObject): boolean {
    const place = placeName({ ...spec, serviceId: service.metadata.id });
    return deps.exports.by(exportsOfPlace, `${metadata.organizationId} ${place}`).length > 0;
  }

  return (integration) => {
    const { metadata, spec } = integration;
    if (spec.serviceId !== null) {
      const service = deps.services.get(spec.serviceId)?.object;
      const its = service?.metadata.organizationId === metadata.organizationId ? [service] : [];
      return targetsOf(its, [], machinesOf);
    }
    const all = ofOrganization(deps.services, metadata.organizationId);
    const elsewhere = all.filter((service) => hasOwn(service, integration));
    const its = elsewhere.length === 0 ? all : all.filter((service) => !elsewhere.includes(service));
    return targetsOf(its, elsewhere, machinesOf);
  };
}

function targetsOf(
  services: readonly ManagedServiceObject[],
  elsewhere: readonly ManagedServiceObject[],
  machinesOf: (service: ManagedServiceObject) => readonly MachineTarget[],
): ExportTargets {
  return {
    machines: services.flatMap(machinesOf),
    services: new Map(services.map((service) => [service.metadata.id, service])),
    elsewhere,
  };
}

/** A machine of the service, also one whose node is gone. */
export function machineTarget(service: ManagedServiceObject, machineId: string): MachineTarget {
  const { metadata, spec, status } = service;
  const origin = {
    serviceId: metadata.id,
    serviceName: metadata.name,
    dbType: spec.databaseType,
    nodeId: machineId,
  };
  return { machineId, service, origin, role: machineId === status.primaryNodeId ? "primary" : "replica" };
}
