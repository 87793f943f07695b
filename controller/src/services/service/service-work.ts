import type { Fleet } from "#fleet/fleet.ts";
import { whenHostsChange } from "#fleet/host/host-changes.ts";
import { imagesInShort } from "#fleet/host/host-images.ts";
import { type HostObject, holdsServices, isLeft, isOpen } from "#fleet/host/host.ts";
import { hostOfMachine, type MachineObject } from "#fleet/machine/machine.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Resource } from "#kernel/store/resource.ts";
import { isSuspect } from "./member/suspicion.ts";
import { createManagedServiceReconciler, type ManagedServiceReconcilerDeps } from "./managed-service-reconciler.ts";

export interface ServiceWorkDeps extends ManagedServiceReconcilerDeps {
  readonly machines: Collection<MachineObject>;
  readonly hosts: Collection<HostObject>;
  /** What is pending for any service may change with an image. */
  readonly nodeImages: Pick<Collection<Resource<unknown, unknown>>, "values" | "subscribe">;
  readonly fleet: Fleet;
  /** A deletion waits for its final backup. */
  readonly backupObjects: Pick<Collection<Resource<{ readonly serviceId: string }, unknown>>, "get" | "subscribe">;
}

const pulseEveryMs = 500;

/** The reconciler of services, woken by all that a service is made of. */
export function createServiceWork(deps: ServiceWorkDeps): ControlLoop {
  const { services, machines, hosts, nodeImages, fleet } = deps;
  /** The service whose node a machine is. */
  const ownerOf = (machineId: string) => {
    const owner = machines.get(machineId)?.object.spec.owner;
    return owner?.kind === "managed-service" ? owner.id : undefined;
  };
  // A machine that is gone names no owner any more, so whose it was is remembered.
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
      // Who is silent wakes nobody.
      const pulsing = setInterval(() => {
        for (const { object } of services.values()) {
          if (object.spec.nodes.length > 1 && isSuspect(deps.pulse.heard(object.status.primaryNodeId)))
            onChange(object.metadata.id);
        }
      }, pulseEveryMs).unref();
      const watching = [
        { close: () => clearInterval(pulsing) },
        services.subscribe(onChange),
        machines.subscribe(machineChanged),
        fleet.subscribe(machineChanged),
        whenHostsChange(hosts, hostInShort, (hostId) => {
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
    inputs: (id) => inputsOf(id, deps),
    concurrency: 32,
  };
}

/** All that a reconcile of the service reads from memory, in one text. */
function inputsOf(id: string, { services, machines, hosts, nodeImages, fleet }: ServiceWorkDeps): string {
  const service = services.get(id);
  const nodes = service?.object.spec.nodes ?? [];
  const parts = nodes.map((node) => {
    const observedAt = fleet.observation(node.id)?.observedAt ?? 0;
    const machine = machines.get(node.id);
    const host = hosts.get(machine?.object.spec.hostId ?? "")?.object;
    const told = host === undefined ? "" : hostInShort(host);
    const { bootId = "", keeperProtocol = 0 } = fleet.session(node.id) ?? {};
    return `${machine?.modRevision ?? 0} ${told} ${bootId} ${keeperProtocol} ${observedAt}`;
  });
  const images = [...nodeImages.values()].map(({ modRevision }) => modRevision);
  return `${service?.modRevision ?? 0} ${parts.join(" ")} ${images.join(" ")}`;
}

/** What a service reads of a host that it is on. */
function hostInShort(host: HostObject): string {
  return `${holdsServices(host)} ${isLeft(host)} ${isOpen(host)} ${imagesInShort(host)} ${host.status.facts?.keeperProtocol ?? 0}`;
}
