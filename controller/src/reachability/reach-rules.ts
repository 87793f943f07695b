import { isIP } from "node:net";
import { endpointOf } from "@holdfast/common/endpoint.ts";
import type { ReachRule } from "../compute/compute-provider.ts";
import type { MachineObject } from "../machine/machine.ts";
import type { ManagedServiceObject } from "../managed-service/managed-service.ts";
import type { Member } from "../runtime/membership.ts";

/**
 * Pure: who may reach which machine of a host, from wherever its peers are: clients by either address, peers by the private
 * one. What no rule allows is denied; a machine without an owner has none.
 */
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
    const { address: to, publicAddress } = member.status;
    const others = members.filter((other) => other !== member);
    const peers = others.map(({ status }) => status.address);
    const elsewhere = others.filter((other) => other.spec.hostId !== hostId);
    return [
      { owner, to, port: spec.port, from: spec.allowedCidrs },
      ...(publicAddress === to ? [] : [{ owner, to: publicAddress, port: spec.port, from: spec.allowedCidrs }]),
      ...(peers.length === 0 ? [] : [{ owner, to, port: null, from: peers.map((peer) => `${peer}/32`) }]),
      // What it may begin is for its own host's edge to let out.
      ...elsewhere.map(({ status }) => ({ owner, to: status.address, port: null, from: [`${to}/32`] })),
    ];
  });
}

/**
 * Pure: every machine may call every controller that listens, wherever that is, also one that drains. One that is known by
 * a name is reached where it is the host's own.
 */
export function controllerRulesOf(members: readonly Member[]): ReachRule[] {
  return members.flatMap(({ id, address }) => {
    if (address === "") return [];
    const { host: to, port } = endpointOf(address);
    const family = isIP(to);
    return family === 0
      ? []
      : [{ owner: { kind: "controller", id }, to, port, from: [family === 4 ? "0.0.0.0/0" : "::/0"] }];
  });
}
