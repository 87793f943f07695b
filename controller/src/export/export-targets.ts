import type { MonitoredOwner } from "#fleet/owner/monitored-owner.ts";
import type { MonitoredOwners } from "#fleet/owner/monitored-owners.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Origin } from "./export-item.ts";
import { exportsOfScope, type MetricsExportObject, scopeName } from "./metrics-export.ts";

/** A machine whose items an integration exports. */
export interface MachineTarget {
  readonly machineId: string;
  readonly owner: MonitoredOwner;
  readonly origin: Origin;
  readonly role: "primary" | "replica";
}

export interface ExportTargets {
  /** The machines of its owners. */
  readonly machines: readonly MachineTarget[];
  readonly owners: ReadonlyMap<string, MonitoredOwner>;
  /** Owners of the organization with an integration of the same type of their own, which replaces this one. */
  readonly overridden: readonly MonitoredOwner[];
}

/**
 * Returns a function that resolves what an integration exports now. The origin of a machine is the same object while
 * its owner does not change.
 */
export function createExportTargets(deps: {
  readonly owners: Pick<MonitoredOwners, "get" | "ofOrganization">;
  readonly exports: Pick<Collection<MetricsExportObject>, "by">;
}): (integration: MetricsExportObject) => ExportTargets {
  const cache = new WeakMap<MonitoredOwner, readonly MachineTarget[]>();

  function machinesOf(owner: MonitoredOwner): readonly MachineTarget[] {
    const before = cache.get(owner);
    if (before !== undefined) return before;
    const machines = owner.machines.map(({ id }) => machineTarget(owner, id));
    cache.set(owner, machines);
    return machines;
  }

  function hasOwn({ owner }: MonitoredOwner, { metadata, spec }: MetricsExportObject): boolean {
    const scope = scopeName({ ...spec, serviceId: owner.id });
    return deps.exports.by(exportsOfScope, `${metadata.organizationId} ${scope}`).length > 0;
  }

  return (integration) => {
    const { metadata, spec } = integration;
    if (spec.serviceId !== null) {
      const owner = deps.owners.get(spec.serviceId);
      const own = owner?.organizationId === metadata.organizationId ? [owner] : [];
      return targetsOf(own, [], machinesOf);
    }
    const all = deps.owners.ofOrganization(metadata.organizationId);
    const overridden = all.filter((owner) => hasOwn(owner, integration));
    const own = overridden.length === 0 ? all : all.filter((owner) => !overridden.includes(owner));
    return targetsOf(own, overridden, machinesOf);
  };
}

function targetsOf(
  owners: readonly MonitoredOwner[],
  overridden: readonly MonitoredOwner[],
  machinesOf: (owner: MonitoredOwner) => readonly MachineTarget[],
): ExportTargets {
  return {
    machines: owners.flatMap(machinesOf),
    owners: new Map(owners.map((each) => [each.owner.id, each])),
    overridden,
  };
}

/** A machine of the owner, also one that it has no more. */
export function machineTarget(owner: MonitoredOwner, machineId: string): MachineTarget {
  const origin = {
    serviceId: owner.owner.id,
    serviceName: owner.name,
    dbType: owner.software,
    nodeId: machineId,
  };
  return { machineId, owner, origin, role: owner.machines.find(({ id }) => id === machineId)?.role ?? "replica" };
}
