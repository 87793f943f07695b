import { randomInt } from "node:crypto";
import { privateNameOf } from "#fleet/zone/private-name.ts";
import type { ManagedServiceObject, NodeSpec } from "./managed-service.ts";
import type { ObservedNode } from "./observed-service.ts";
import { isReplicated, standbysOf } from "./member/members.ts";
import { follows } from "./member/proven-replicas.ts";

/** A name that clients resolve, with the addresses behind it. */
export interface ServiceName {
  readonly name: string;
  readonly addresses: readonly string[];
  readonly ttlS: number;
}

const base32 = "abcdefghijklmnopqrstuvwxyz234567";

/** Eight random characters that make a hostname unique and unguessable from the service's name. */
export function newShortId(): string {
  return Array.from({ length: 8 }, () => base32[randomInt(base32.length)]).join("");
}

/** `<name>-<short id>.<zone>.<domain>`, fixed at creation. */
export function hostnameOf(name: string, shortId: string, zone: string, domain: string): string {
  return `${name}-${shortId}.${zone}.${domain}`;
}

/** The name of the member with this number, beside the service's own. */
export function nodeHostnameOf(serviceHostname: string, number: number): string {
  const [label, ...rest] = serviceHostname.split(".");
  return [`${label}-${number}`, ...rest].join(".");
}

/** The name for reads: any healthy replica, the primary while there is none. */
export function replicaHostnameOf(serviceHostname: string): string {
  return `replica-${serviceHostname}`;
}

/** Every name that a node's certificate carries from the start, so that a promotion needs no new one; the private form of each comes with it. */
export function serverNamesOf(service: ManagedServiceObject, node: NodeSpec): string[] {
  return [service.spec.hostname, replicaHostnameOf(service.spec.hostname), node.hostname];
}

/** Pure: the records that the service should have now. The service name moves at once, so it is kept for 1 s only. */
export function namesOf(service: ManagedServiceObject, nodes: readonly ObservedNode[]): ServiceName[] {
  const named = (name: string, nodeIds: readonly string[], ttlS: number): ServiceName[] => {
    const found = nodeIds.map((id) => nodes.find(({ node }) => node.id === id)?.machine?.status);
    const addresses = found.map((status) => status?.publicAddress ?? "").sort();
    const privateAddresses = found.map((status) => status?.address ?? "").sort();
    return [
      { name, addresses, ttlS },
      { name: privateNameOf(name), addresses: privateAddresses, ttlS },
    ];
  };
  const { hostname, succession } = service.spec;
  // Clients are led to a new primary once it has taken a write.
  const primary = succession?.from ?? service.status.primaryNodeId;
  const readers = readersOf(service, nodes);
  const names = [
    ...named(hostname, [primary], 1),
    ...named(replicaHostnameOf(hostname), readers.length === 0 ? [primary] : readers, 1),
    ...service.spec.nodes.flatMap((node) => (node.leaving ? [] : named(node.hostname, [node.id], 10))),
  ];
  return names.filter(({ addresses }) => addresses.every((address) => address !== ""));
}

/** Replicas that have what the primary writes, as far as is known. */
function readersOf(service: ManagedServiceObject, nodes: readonly ObservedNode[]): string[] {
  if (!isReplicated(service.spec)) return [];
  const standbys = new Set(standbysOf(service).map(({ id }) => id));
  return nodes.filter((node) => standbys.has(node.node.id) && follows(node)).map(({ node }) => node.id);
}

/** Every name that was ever the service's; all of them go with it. */
export function allNamesOf(service: ManagedServiceObject): string[] {
  const { hostname, nodes } = service.spec;
  const names = [hostname, replicaHostnameOf(hostname), ...nodes.map((node) => node.hostname)];
  return names.flatMap((name) => [name, privateNameOf(name)]);
}
