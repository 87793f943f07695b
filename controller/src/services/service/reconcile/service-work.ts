import type { Fleet } from "#fleet/fleet.ts";
import { watchHosts } from "#fleet/host/host-changes.ts";
import { imagesFingerprint } from "#fleet/host/host-images.ts";
import { type HostObject, stopsSingleNodes, evictsNodes, acceptsMachines } from "#fleet/host/host.ts";
import { hostOfMachine, type MachineObject } from "#fleet/machine/machine.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Resource } from "#kernel/store/resource.ts";
import { createManagedServiceReconciler, type ManagedServiceReconcilerDeps } from "./managed-service-reconciler.ts";
import { strategyOf } from "../member/strategies.ts";

export interface ServiceWorkDeps extends ManagedServiceReconcilerDeps {
  readonly machines: Collection<MachineObject>;
  readonly hosts: Collection<HostObject>;
  /** Subscribed because a new image may change the pending updates of any service. */
  readonly nodeImages: Pick<Collection<Resource<unknown, unknown>>, "values" | "subscribe">;
  readonly fleet: Fleet;
  /** Subscribed because a deletion waits for its final backup. */
  readonly backupObjects: Pick<Collection<Resource<{ readonly serviceId: string }, unknown>>, "get" | "subscribe">;
}

const suspectPollIntervalMs = 500;

/** Control loop of services: runs the reconciler for each service whose objects, machines, hosts or agents change. */
export function createServiceWork(deps: ServiceWorkDeps): ControlLoop {
  const { services, machines, hosts, nodeImages, fleet } = deps;
  /** Id of the service that a machine belongs to. */
  const ownerOf = (machineId: string) => {
    const owner = machines.get(machineId)?.object.spec.owner;
    return owner?.kind === "managed-service" ? owner.id : undefined;
  };
  // Last owner of each machine, because a deleted machine has no owner any more.
  const lastOwner = new Map<string, string>();
  return {
    reconciler: createManagedServiceReconciler(deps),
    keys: () => services.ids(),
    subscribe(onChange) {
      const machineChanged = (machineId: string) => {
        const owner = ownerOf(machineId) ?? lastOwner.get(machineId);
        if (owner === undefined) return;
        if (machines.get(machineId) === undefined) lastOwner.delete(machineId);
        else lastOwner.set(machineId, owner);
        onChange(owner);
      };
      for (const { object } of machines.values()) machineChanged(object.metadata.id);
      // A silent primary produces no event, so poll for suspects.
      const suspectPoll = setInterval(() => {
        for (const { object } of services.values()) {
          if (strategyOf(object).isSuspect(object, deps.failureDetector)) onChange(object.metadata.id);
        }
      }, suspectPollIntervalMs).unref();
      const watching = [
        { close: () => clearInterval(suspectPoll) },
        services.subscribe(onChange),
        machines.subscribe(machineChanged),
        fleet.subscribe(machineChanged),
        watchHosts(hosts, hostFingerprint, (hostId) => {
          for (const { object } of machines.by(hostOfMachine, hostId)) machineChanged(object.metadata.id);
        }),
        deps.backupObjects.subscribe((id) => {
          const serviceId = deps.backupObjects.get(id)?.object.spec.serviceId;
          if (serviceId !== undefined && services.get(serviceId)?.object.metadata.deletionRequestedAt !== undefined)
            onChange(serviceId);
        }),
        nodeImages.subscribe(() => {
          for (const id of services.ids()) onChange(id);
        }),
      ];
      return {
        close() {
          for (const watch of watching) watch.close();
        },
      };
    },
    inputs: (id) => fingerprintOf(id, deps),
    concurrency: 32,
  };
}

/** Fingerprint of all that a round reads from memory, such as `1042 7 true false b1 4 1764316800000`. */
function fingerprintOf(id: string, { services, machines, hosts, nodeImages, fleet }: ServiceWorkDeps): string {
  const service = services.get(id);
  const nodes = service?.object.spec.nodes ?? [];
  const parts = nodes.map((node) => {
    const observedAt = fleet.observation(node.id)?.observedAt ?? 0;
    const machine = machines.get(node.id);
    const host = hosts.get(machine?.object.spec.hostId ?? "")?.object;
    const hostFacts = host === undefined ? "" : hostFingerprint(host);
    const { bootId = "", keeperProtocol = 0 } = fleet.session(node.id) ?? {};
    return `${machine?.modRevision ?? 0} ${hostFacts} ${bootId} ${keeperProtocol} ${observedAt}`;
  });
  const images = [...nodeImages.values()].map(({ modRevision }) => modRevision);
  return `${service?.modRevision ?? 0} ${parts.join(" ")} ${images.join(" ")}`;
}

/** Fields of a host that the services on it depend on, as a string. */
function hostFingerprint(host: HostObject): string {
  const { keeperProtocol = 0 } = host.status.facts ?? {};
  return `${stopsSingleNodes(host)} ${evictsNodes(host)} ${acceptsMachines(host)} ${imagesFingerprint(host)} ${keeperProtocol}`;
}
