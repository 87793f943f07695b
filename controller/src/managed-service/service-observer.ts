import type { Fleet } from "../fleet/fleet.ts";
import { type HostObject, holdsServices, isSilent } from "../host/host.ts";
import { isUp, type MachineObject } from "../machine/machine.ts";
import type { Collection } from "../store/collection.ts";
import type { Resource } from "../store/resource.ts";
import type { DnsRecordObject } from "../zone/dns-record.ts";
import type { ManagedServiceObject } from "./managed-service.ts";
import type { ObservedNode, ObservedService } from "./managed-service-plan.ts";
import type { NameVerification } from "./name-verification.ts";
import { allNamesOf, namesOf, type ServiceName } from "./service-names.ts";

export interface ObserverDeps {
  readonly machines: Collection<MachineObject>;
  readonly hosts: Pick<Collection<HostObject>, "get">;
  readonly records: Collection<DnsRecordObject>;
  /** Changes of users and databases that are under way. */
  readonly changes: Pick<Collection<Resource<{ readonly serviceId: string }, unknown>>, "values" | "reached">;
  readonly fleet: Fleet;
  readonly names: NameVerification;
}

/** What the world is like for this service now, from the watched objects and the agents' last words. */
export function observeService(service: ManagedServiceObject, deps: ObserverDeps): ObservedService {
  // One of several is for a drain to move, not to stop.
  const isAlone = service.spec.nodes.length === 1;
  const nodes = service.spec.nodes.map((node): ObservedNode => {
    const machine = deps.machines.get(node.id)?.object;
    const host = deps.hosts.get(machine?.spec.hostId ?? "")?.object;
    const up = machine !== undefined && isUp(machine);
    const session = deps.fleet.session(node.id);
    const observation = deps.fleet.observation(node.id);
    return {
      node,
      machine,
      connected: up && session !== undefined,
      instance: observation?.instance,
      isHeld: isAlone && host !== undefined && holdsServices(host),
      silentHost: host !== undefined && isSilent(host) ? host.metadata.id : undefined,
      isCurrent: observation !== undefined && observation.bootId === session?.bootId,
    };
  });
  return { nodes, names: observeNames(service, nodes, deps), isChanging: isChanging(service, deps) };
}

function isChanging({ metadata }: ManagedServiceObject, { changes }: ObserverDeps): boolean {
  for (const { object } of changes.values()) if (object.spec.serviceId === metadata.id) return true;
  return false;
}

function observeNames(
  service: ManagedServiceObject,
  nodes: readonly ObservedNode[],
  deps: ObserverDeps,
): ObservedService["names"] {
  const present = allNamesOf(service).map((name) => deps.records.get(name)?.object);
  if (service.metadata.deletionRequestedAt !== undefined) {
    const gone = present.every((record) => record === undefined);
    return gone && deps.names.isVerified(service.metadata.id, withdrawn(service)) ? "absent" : "published";
  }
  const wanted = namesOf(service, nodes);
  if (present.every((record) => record === undefined) || wanted.length === 0) return "absent";
  if (!wanted.every((name) => isPublished(name, deps.records.get(name.name)?.object))) return "outdated";
  return deps.names.isVerified(service.metadata.id, wanted) ? "verified" : "published";
}

function isPublished(name: ServiceName, record: DnsRecordObject | undefined): boolean {
  return (
    record !== undefined && record.spec.ttlS === name.ttlS && record.spec.addresses.join() === name.addresses.join()
  );
}

/** The service's names as they are to be answered when it is gone: not at all. */
export function withdrawn(service: ManagedServiceObject): ServiceName[] {
  return allNamesOf(service).map((name) => ({ name, addresses: [], ttlS: 0 }));
}
