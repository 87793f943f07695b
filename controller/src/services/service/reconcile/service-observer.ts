import type { Fleet } from "#fleet/fleet.ts";
import { type HostObject, stopsSingleNodes, evictsNodes, isUnreachable } from "#fleet/host/host.ts";
import { isUp, type MachineObject } from "#fleet/machine/machine.ts";
import { type EngineChangeObject, serviceOfChange } from "../../contents/change/engine-change.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { DnsRecordObject } from "#fleet/zone/dns-record.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import type { ObservedNode, ObservedService } from "./observed-service.ts";
import type { NameVerification } from "../network/name-verification.ts";
import type { ServiceBackups } from "../service-backups.ts";
import type { FailureDetector } from "../member/primary-replicas/failover/failure-detector.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import { allNamesOf, namesOf, type ServiceName } from "../network/service-names.ts";
import { replayMemoryOf } from "../../backup/restore/replay-memory.ts";
import { isInSync, isRequiredForService } from "../member/member-roles.ts";
import { strategyOf } from "../member/strategies.ts";

export interface ObserverDeps {
  readonly machines: Collection<MachineObject>;
  readonly hosts: Pick<Collection<HostObject>, "get">;
  readonly records: Collection<DnsRecordObject>;
  /** Changes of users and databases in progress. */
  readonly changes: Pick<Collection<EngineChangeObject>, "by" | "untilRevision">;
  readonly fleet: Fleet;
  readonly names: NameVerification;
  readonly backups: ServiceBackups;
  readonly failureDetector: FailureDetector;
  readonly catalog: CatalogData;
}

/** Observed state of a service, from watched objects and the agents' last reports. */
export function observeService(service: ManagedServiceObject, deps: ObserverDeps): ObservedService {
  // A drain moves a node of a service with several nodes, and stops a single node.
  const isAlone = service.spec.nodes.length === 1;
  const nodes = service.spec.nodes.map((node): ObservedNode => {
    const machine = deps.machines.get(node.id)?.object;
    const host = deps.hosts.get(machine?.spec.hostId ?? "")?.object;
    const up = machine !== undefined && isUp(machine);
    const session = deps.fleet.session(node.id);
    const observation = deps.fleet.observation(node.id);
    const replayMemory = replayMemoryOf(observation?.instance.restore, machine, deps);
    const seen: ObservedNode = {
      node,
      ...(!isRequiredForService(service, node) && { isReplica: true }),
      machine,
      connected: up && session !== undefined,
      instance: observation?.instance,
      stoppedForDrain: isAlone && host !== undefined && stopsSingleNodes(host),
      ...(host !== undefined && evictsNodes(host) && { mustMove: true }),
      silentHost: host !== undefined && isUnreachable(host) ? host.metadata.id : undefined,
      ...(replayMemory !== undefined && { replayMemory }),
      isCurrent: observation !== undefined && observation.bootId === session?.bootId,
    };
    if (isAlone || isRequiredForService(service, node)) return seen;
    const fact = `away ${node.id}`;
    if (!isInSync(service, seen)) return { ...seen, disconnectedMs: deps.failureDetector.trueForMs(fact) };
    deps.failureDetector.forget(fact);
    return seen;
  });
  return {
    nodes,
    names: observeNames(service, nodes, deps),
    isChanging: isChanging(service, deps),
    awaitsFinalBackup: awaitsFinalBackup(service, deps),
    retainsDisks: deps.backups.retainsDisks(service),
    newestRecoveryPoint: deps.backups.newestRecoveryPoint(service),
    ...strategyOf(service).derive(service, nodes, deps.catalog),
  };
}

function awaitsFinalBackup(service: ManagedServiceObject, { backups }: ObserverDeps): boolean {
  return service.metadata.deletionRequestedAt !== undefined && !backups.canDeleteMachines(service);
}

function isChanging({ metadata }: ManagedServiceObject, { changes }: ObserverDeps): boolean {
  return changes.by(serviceOfChange, metadata.id).length > 0;
}

function observeNames(
  service: ManagedServiceObject,
  nodes: readonly ObservedNode[],
  deps: ObserverDeps,
): ObservedService["names"] {
  const present = allNamesOf(service).map((name) => deps.records.get(name)?.object);
  const removed = service.spec.nodes.filter(({ leaving }) => leaving === true).map(({ hostname }) => hostname);
  if (service.metadata.deletionRequestedAt !== undefined) {
    const isAbsent = present.every((record) => record === undefined);
    return isAbsent && deps.names.isVerified(service.metadata.id, withdrawn(service)) ? "absent" : "published";
  }
  const desired = namesOf(service, nodes);
  if (present.every((record) => record === undefined) || desired.length === 0) return "absent";
  if (removed.some((name) => deps.records.get(name) !== undefined)) return "outdated";
  if (!desired.every((name) => isPublished(name, deps.records.get(name.name)?.object))) return "outdated";
  return deps.names.isVerified(service.metadata.id, desired) ? "verified" : "published";
}

function isPublished(name: ServiceName, record: DnsRecordObject | undefined): boolean {
  return (
    record !== undefined && record.spec.ttlS === name.ttlS && record.spec.addresses.join() === name.addresses.join()
  );
}

/** The names of a deleted service without addresses: DNS servers must not resolve them. */
export function withdrawn(service: ManagedServiceObject): ServiceName[] {
  return allNamesOf(service).map((name) => ({ name, addresses: [], ttlS: 0 }));
}
