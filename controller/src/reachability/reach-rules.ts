import type { ReachRule } from "../compute/compute-provider.ts";
import type { MachineObject } from "../machine/machine.ts";
import type { ManagedServiceObject } from "../managed-service/managed-service.ts";

/** Pure: who may reach which machine of a host, from wherever its peers are. What no rule allows is denied; a machine without an owner has none. */
export function reachRulesOf(
  services: Iterable<ManagedServiceObject>,
  hostId: string,
  machine: (id: string) => MachineObject | undefined,
): ReachRule[] {
  return Iterator.from(services)
    .flatMap((service) => rulesOfService(service, hostId, machine))
    .toArray();
}

function rulesOfService(
  { metadata, spec }: ManagedServiceObject,
  hostId: string,
  machine: (id: string) => MachineObject | undefined,
): ReachRule[] {
  const owner = { kind: "managed-service", id: metadata.id };
  const members = spec.nodes.flatMap(({ id }) => {
    const object = machine(id);
    const isOurs = object?.spec.owner?.kind === owner.kind && object.spec.owner.id === owner.id;
    return isOurs && object.status.address !== "" ? [object] : [];
  });
  const here = members.filter((member) => member.spec.hostId === hostId);
  return here.flatMap((member) => {
    const to = member.status.address;
    const peers = members.filter((other) => other !== member).map(({ status }) => status.address);
    return [
      { owner, to, port: spec.port, from: spec.allowedCidrs },
      ...(peers.length === 0 ? [] : [{ owner, to, port: null, from: peers.map((peer) => `${peer}/32`) }]),
    ];
  });
}
