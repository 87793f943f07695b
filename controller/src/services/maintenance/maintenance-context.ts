import type { Fleet } from "#fleet/fleet.ts";
import type { HostObject } from "#fleet/host/host.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { NodeImageObject } from "./node-image.ts";
import type { KeeperOfMachine, MaintenanceContext } from "./pending-update.ts";
import { firstMemberOf } from "../service/member/member-roles.ts";

export interface MaintenanceContextDeps {
  readonly nodeImages: Collection<NodeImageObject>;
  readonly machines: Collection<MachineObject>;
  readonly hosts: Pick<Collection<HostObject>, "get">;
  readonly fleet: Pick<Fleet, "observation" | "session">;
  readonly newestRestorePointOf: (service: ManagedServiceObject) => number | undefined;
}

/** The context of a service's updates, read from memory. */
export function maintenanceContext(
  service: ManagedServiceObject,
  { nodeImages, machines, hosts, fleet, newestRestorePointOf }: MaintenanceContextDeps,
  now: number,
): MaintenanceContext {
  const { id } = firstMemberOf(service);
  const observation = fleet.observation(id);
  const isCurrent = observation !== undefined && observation.bootId === fleet.session(id)?.bootId;
  const machine = machines.get(id)?.object;
  const tiers = hosts.get(machine?.spec.hostId ?? "")?.object.status.facts?.tiers ?? [];
  const keepers = service.spec.nodes.flatMap((node): KeeperOfMachine[] => {
    const session = fleet.session(node.id);
    const { facts } = hosts.get(machines.get(node.id)?.object.spec.hostId ?? "")?.object.status ?? {};
    const next = facts?.keeperProtocol;
    return session === undefined || next === undefined ? [] : [{ has: session.keeperProtocol, next }];
  });
  const hostIds = new Set(service.spec.nodes.map((node) => machines.get(node.id)?.object.spec.hostId ?? ""));
  return {
    hosts: [...hostIds].flatMap((hostId) => hosts.get(hostId)?.object ?? []),
    images: [...nodeImages.values()].map(({ object }) => object),
    image: machine?.spec.image ?? "",
    guestKernel: machine?.spec.guestKernel ?? "",
    keepers,
    snapshotProblem: tiers.find(({ name }) => name === machine?.spec.storageTier)?.snapshotProblem ?? "",
    restorePoint: newestRestorePointOf(service),
    instance: isCurrent ? observation.instance : undefined,
    now,
  };
}
