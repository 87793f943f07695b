import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { ofOrganization } from "#kernel/store/of-organization.ts";
import type { Origin } from "./export-item.ts";
import { exportsOfScope, type MetricsExportObject, scopeName } from "./metrics-export.ts";
import { roleOf } from "#services/service/member/member-roles.ts";

/** A machine whose items an integration exports. */
export interface MachineTarget {
  readonly machineId: string;
  readonly service: ManagedServiceObject;
  readonly origin: Origin;
  readonly role: "primary" | "replica";
}

export interface ExportTargets {
  /** The machines of its services. */
  readonly machines: readonly MachineTarget[];
  readonly services: ReadonlyMap<string, ManagedServiceObject>;
  /** Services of the organization with an integration of the same type of their own, which replaces this one. */
  readonly overridden: readonly ManagedServiceObject[];
}

/**
 * Returns a function that resolves what an integration exports now. The origin of a machine is the same object while
 * its service does not change.
 */
export function createExportTargets(deps: {
  readonly services: Pick<Collection<ManagedServiceObject>, "get" | "page">;
  readonly exports: Pick<Collection<MetricsExportObject>, "by">;
}): (integration: MetricsExportObject) => ExportTargets {
  const cache = new WeakMap<ManagedServiceObject, readonly MachineTarget[]>();

  function machinesOf(service: ManagedServiceObject): readonly MachineTarget[] {
    const before = cache.get(service);
    if (before !== undefined) return before;
    const machines = service.spec.nodes.map(({ id }) => machineTarget(service, id));
    cache.set(service, machines);
    return machines;
  }

  function hasOwn(service: ManagedServiceObject, { metadata, spec }: MetricsExportObject): boolean {
    const scope = scopeName({ ...spec, serviceId: service.metadata.id });
    return deps.exports.by(exportsOfScope, `${metadata.organizationId} ${scope}`).length > 0;
  }

  return (integration) => {
    const { metadata, spec } = integration;
    if (spec.serviceId !== null) {
      const service = deps.services.get(spec.serviceId)?.object;
      const own = service?.metadata.organizationId === metadata.organizationId ? [service] : [];
      return targetsOf(own, [], machinesOf);
    }
    const all = ofOrganization(deps.services, metadata.organizationId);
    const overridden = all.filter((service) => hasOwn(service, integration));
    const own = overridden.length === 0 ? all : all.filter((service) => !overridden.includes(service));
    return targetsOf(own, overridden, machinesOf);
  };
}

function targetsOf(
  services: readonly ManagedServiceObject[],
  overridden: readonly ManagedServiceObject[],
  machinesOf: (service: ManagedServiceObject) => readonly MachineTarget[],
): ExportTargets {
  return {
    machines: services.flatMap(machinesOf),
    services: new Map(services.map((service) => [service.metadata.id, service])),
    overridden,
  };
}

/** A machine of the service, also that of a removed node. */
export function machineTarget(service: ManagedServiceObject, machineId: string): MachineTarget {
  const { metadata, spec } = service;
  const origin = {
    serviceId: metadata.id,
    serviceName: metadata.name,
    dbType: spec.databaseType,
    nodeId: machineId,
  };
  return { machineId, service, origin, role: roleOf(service, { id: machineId }) };
}
