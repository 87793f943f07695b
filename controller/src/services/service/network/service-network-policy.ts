import { enginePortOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { PolicyRule } from "@holdfast/compute/compute-provider.ts";
import { isDeepStrictEqual } from "node:util";
import { hostOfMachine, type MachineObject } from "#fleet/machine/machine.ts";
import type { PolicySource } from "#fleet/network-policy/policy-source.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { managedServiceKind, type ManagedServiceObject } from "../managed-service.ts";
import { clientPorts } from "../pooler.ts";
import { privatePortOf } from "../private-listener.ts";
import { clientNetworksOf } from "./client-networks.ts";

export interface ServiceNetworkPolicyDeps {
  readonly services: Pick<Collection<ManagedServiceObject>, "get" | "subscribe">;
  readonly machines: Pick<Collection<MachineObject>, "get" | "by" | "subscribe">;
}

/** Network policy of services: admits the allow-list and the other members to each service's machines. */
export function createServiceNetworkPolicy({ services, machines }: ServiceNetworkPolicyDeps): PolicySource {
  const machine = (id: string) => machines.get(id)?.object;
  const hostsOf = (...objects: (ManagedServiceObject | undefined)[]) =>
    new Set(
      objects.flatMap((service) => service?.spec.nodes.flatMap(({ id }) => machine(id)?.spec.hostId ?? []) ?? []),
    );

  return {
    name: managedServiceKind.name,
    rulesOn(hostId) {
      const here = machines.by(hostOfMachine, hostId);
      const ids = new Set(here.flatMap(({ object }) => ownerOf(object) ?? []));
      return [...ids].flatMap((id) => {
        const service = services.get(id)?.object;
        return service === undefined ? [] : servicePolicyRules(service, hostId, machine);
      });
    },
    subscribe(onChange) {
      const watches = [
        services.subscribe((id, before) => {
          const after = services.get(id)?.object;
          if (!isDeepStrictEqual(policyInputsOf(before), policyInputsOf(after))) onChange(hostsOf(before, after));
        }),
        machines.subscribe((id, before) => {
          const after = machine(id);
          if (isDeepStrictEqual(machineInputsOf(before), machineInputsOf(after))) return;
          const hostIds = [before, after].flatMap((object) => object?.spec.hostId ?? []);
          const owners = [before, after].map((object) => services.get(ownerOf(object) ?? "")?.object);
          onChange(hostsOf(...owners).union(new Set(hostIds)));
        }),
      ];
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },
  };
}

/** Id of the service that owns a machine. */
function ownerOf(machine: MachineObject | undefined): string | undefined {
  const owner = machine?.spec.owner;
  return owner?.kind === managedServiceKind.name ? owner.id : undefined;
}

/** Fields of a service that its rules depend on. */
function policyInputsOf(service: ManagedServiceObject | undefined): unknown {
  if (service === undefined) return undefined;
  const { platformAccess, nodes } = service.spec;
  return [
    clientNetworksOf(service.spec),
    platformAccess,
    nodes.map(({ id }) => id),
    clientPorts(service.spec),
    privatePortOf(service.spec),
  ];
}

/** Fields of a machine that the rules of its service depend on. */
function machineInputsOf(machine: MachineObject | undefined): unknown {
  return machine && [machine.spec.owner, machine.spec.hostId, machine.status.address, machine.status.publicAddress];
}

/**
 * Rules for the machines of a service on one host; its other members may be on any host. Clients use the private and
 * the public address, members only the private one. Everything without a rule is denied.
 */
export function servicePolicyRules(
  { metadata, spec }: ManagedServiceObject,
  hostId: string,
  machine: (id: string) => MachineObject | undefined,
): PolicyRule[] {
  const owner = { kind: managedServiceKind.name, id: metadata.id };
  const members = spec.nodes.flatMap(({ id }) => {
    const object = machine(id);
    const isOfService = object?.spec.owner?.kind === owner.kind && object.spec.owner.id === owner.id;
    return isOfService && object.status.address !== "" ? [object] : [];
  });
  const ports = Object.values(clientPorts(spec));
  const privatePort = privatePortOf(spec);
  const clients = clientNetworksOf(spec);
  const platform = [...new Set((spec.platformAccess ?? []).flatMap(({ from }) => from))];
  const here = members.filter((member) => member.spec.hostId === hostId);
  return here.flatMap((member) => {
    const { address: to, publicAddress } = member.status;
    const others = members.filter((other) => other !== member);
    const peers = others.map(({ status }) => status.address);
    const elsewhere = others.filter((other) => other.spec.hostId !== hostId);
    const addresses = publicAddress === to ? [to] : [to, publicAddress];
    return [
      ...addresses.flatMap((address) => ports.map((port) => ({ owner, to: address, port, from: clients }))),
      ...(privatePort === undefined ? [] : [{ owner, to, port: privatePort, from: clients }]),
      ...(platform.length === 0
        ? []
        : [{ owner, to, port: enginePortOf(spec.databaseType, spec.port) ?? spec.port, from: platform }]),
      ...(peers.length === 0 ? [] : [{ owner, to, port: null, from: peers.map((peer) => `${peer}/32`) }]),
      // Outgoing connections to members on other hosts pass the firewall of this host.
      ...elsewhere.map(({ status }) => ({ owner, to: status.address, port: null, from: [`${to}/32`] })),
    ];
  });
}
