import { randomBytes } from "node:crypto";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { keyOf } from "#kernel/store/resource.ts";
import { engineFormOf } from "../../engine/engine-forms.ts";
import { type ManagedServiceObject, managedServiceKind, type NodeSpec } from "../managed-service.ts";
import { nodeHostnameOf } from "../service-names.ts";

/** Throws NOT_SUPPORTED for an engine whose services have one node. */
export function requireReplicas(databaseType: string): void {
  if (engineFormOf(databaseType).replicas !== undefined) return;
  throw new HoldfastError("NOT_SUPPORTED", `A service of ${databaseType} cannot have replicas yet.`);
}

/** The service with what its replicas sign in with, made with the first of them; it leaves the store only to its machines. */
export function withReplicationSecret(
  service: ManagedServiceObject,
  sealer: Pick<Sealer, "seal">,
): ManagedServiceObject {
  const { metadata, spec } = service;
  const isWanted = spec.nodes.length > 1 && engineFormOf(spec.databaseType).replicas?.haveSecret === true;
  if (!isWanted || spec.replicationSecret !== undefined) return service;
  const secret = randomBytes(32).toString("hex");
  return {
    ...service,
    spec: { ...spec, replicationSecret: sealer.seal(secret, keyOf(managedServiceKind, metadata.id)) },
  };
}

/** Empty where certificates are enough. */
export function replicationSecretOf({ metadata, spec }: ManagedServiceObject, sealer: Pick<Sealer, "open">): string {
  if (spec.replicationSecret === undefined) return "";
  return sealer.open(spec.replicationSecret, keyOf(managedServiceKind, metadata.id));
}

/** Pure: a member that has yet to copy the primary's data. `hostname` is the service's. */
export function replicaNode(args: {
  readonly id: string;
  readonly hostname: string;
  readonly zone: string;
  readonly number: number;
}): NodeSpec {
  const { id, hostname, zone, number } = args;
  return { id, hostname: nodeHostnameOf(hostname, number), zone, number, joining: true };
}
