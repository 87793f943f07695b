import { randomInt } from "node:crypto";
import { privateNameOf } from "#fleet/zone/dns-record.ts";
import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import type { ObservedNode } from "../reconcile/observed-service.ts";
import type { FieldFault } from "@holdfast/common/errors.ts";
import { dnsTargets } from "../member/member-roles.ts";

/** A DNS name that clients resolve, with its addresses. */
export interface ServiceName {
  readonly name: string;
  readonly addresses: readonly string[];
  readonly ttlS: number;
}

const base32 = "abcdefghijklmnopqrstuvwxyz234567";

/** Eight random characters that make a hostname unique and unguessable, such as `k3v9q2zt`. */
export function newShortId(): string {
  return Array.from({ length: 8 }, () => base32[randomInt(base32.length)]).join("");
}

/** `<name>-<short id>.<zone>.<domain>`, constant from creation on; such as `orders-k3v9q2zt.local.holdfast.test`. */
export function hostnameOf(name: string, shortId: string, zone: string, domain: string): string {
  return `${name}-${shortId}.${zone}.${domain}`;
}

/** Hostname of the member with this number, such as `orders-k3v9q2zt-2.local.holdfast.test`. */
export function nodeHostnameOf(serviceHostname: string, number: number): string {
  const [label, ...rest] = serviceHostname.split(".");
  return [`${label}-${number}`, ...rest].join(".");
}

/** Hostname for reads: it resolves to the healthy replicas, or to the primary while there is none. */
export function replicaHostnameOf(serviceHostname: string): string {
  return `replica-${serviceHostname}`;
}

/**
 * Host name of the bucket of a files service, for clients that have the bucket in the host name: they put it before the
 * service's hostname, or before its private one.
 */
export function bucketHostOf(serviceHostname: string): string {
  return `${serviceHostname.split(".", 1)[0]}.${serviceHostname}`;
}

/**
 * Names in a node's certificate, each also in its private form. A replica's certificate has the primary's names too, so
 * that a promotion needs no new certificate.
 */
export function serverNamesOf({ spec: { hostname, bucketHost } }: ManagedServiceObject, node: NodeSpec): string[] {
  const buckets = bucketHost === true ? [hostname, privateNameOf(hostname)].map(bucketHostOf) : [];
  return [hostname, replicaHostnameOf(hostname), node.hostname, ...buckets];
}

/**
 * The DNS records that the service should have now. The service name follows the primary, so its TTL is 1 s.
 */
export function namesOf(service: ManagedServiceObject, nodes: readonly ObservedNode[]): ServiceName[] {
  const named = (
    name: string,
    nodeIds: readonly string[],
    ttlS: number,
    privateName = privateNameOf(name),
  ): ServiceName[] => {
    const found = nodeIds.map((id) => nodes.find(({ node }) => node.id === id)?.machine?.status);
    const addresses = found.map((status) => status?.publicAddress ?? "").sort();
    const privateAddresses = found.map((status) => status?.address ?? "").sort();
    return [
      { name, addresses, ttlS },
      { name: privateName, addresses: privateAddresses, ttlS },
    ];
  };
  const { hostname, bucketHost } = service.spec;
  const leadTo = dnsTargets(service, nodes);
  const names = [
    ...named(hostname, leadTo.service, 1),
    ...(bucketHost === true
      ? named(bucketHostOf(hostname), leadTo.service, 1, bucketHostOf(privateNameOf(hostname)))
      : []),
    ...named(replicaHostnameOf(hostname), leadTo.replicas, 1),
    ...service.spec.nodes.flatMap((node) => (node.leaving ? [] : named(node.hostname, [node.id], 10))),
  ];
  return names.filter(({ addresses }) => addresses.every((address) => address !== ""));
}

/** All names that the service ever had; a deletion removes all of them. */
export function allNamesOf(service: ManagedServiceObject): string[] {
  const { hostname, nodes, bucketHost } = service.spec;
  const ofNodes = nodes.map((node) => node.hostname);
  // Earlier releases published the private form of the bucket's public host name.
  const buckets = bucketHost === true ? [bucketHostOf(hostname)] : [];
  const names = [hostname, replicaHostnameOf(hostname), ...ofNodes, ...buckets];
  return [
    ...names.flatMap((name) => [name, privateNameOf(name)]),
    ...(bucketHost === true ? [bucketHostOf(privateNameOf(hostname))] : []),
  ];
}

/** Segments of present and planned API paths that could be confused with the name of a service. */
const reservedNames: ReadonlySet<string> = new Set(["export", "import", "restore", "templates", "catalog"]);

/** Fault of a reserved name; undefined for any other. */
export function reservedNameFault(name: string): FieldFault | undefined {
  if (!reservedNames.has(name)) return undefined;
  const detail = "is reserved for paths of the API; choose another name";
  return { field: "name", pointer: "/name", code: "reserved", detail };
}
