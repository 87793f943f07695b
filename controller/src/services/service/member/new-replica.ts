import { randomBytes } from "node:crypto";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { keyOf } from "#kernel/store/resource.ts";
import { engineProfileOf } from "../../engine/engine-profiles.ts";
import { type ManagedServiceObject, managedServiceKind, type NodeSpec } from "../managed-service.ts";
import { nodeHostnameOf } from "../network/service-names.ts";

/** Throws NOT_SUPPORTED for an engine whose services have a single node. */
export function requireReplicas(databaseType: string): void {
  if (engineProfileOf(databaseType).replicas !== undefined) return;
  throw new HoldfastError("NOT_SUPPORTED", `A service of ${databaseType} cannot have replicas yet.`);
}

/**
 * The service with the secret by which members authenticate. It is generated with the first replica, or at the creation
 * of a service whose members elect their leader. Only machines of the service receive it.
 */
export function withReplicationSecret(
  service: ManagedServiceObject,
  sealer: Pick<Sealer, "seal">,
): ManagedServiceObject {
  const { metadata, spec } = service;
  const { replicas, peersHaveSecret } = engineProfileOf(spec.databaseType);
  const isNeeded = peersHaveSecret === true || (spec.nodes.length > 1 && replicas?.haveSecret === true);
  if (!isNeeded || spec.replicationSecret !== undefined) return service;
  const secret = randomBytes(32).toString("hex");
  return {
    ...service,
    spec: { ...spec, replicationSecret: sealer.seal(secret, keyOf(managedServiceKind, metadata.id)) },
  };
}

/** The secret by which members authenticate; empty for engines that authenticate them by certificate. */
export function replicationSecretOf({ metadata, spec }: ManagedServiceObject, sealer: Pick<Sealer, "open">): string {
  if (spec.replicationSecret === undefined) return "";
  return sealer.open(spec.replicationSecret, keyOf(managedServiceKind, metadata.id));
}

/** A new member that has no data yet. `hostname` is the service's. */
export function replicaNode(args: {
  readonly id: string;
  readonly hostname: string;
  readonly zone: string;
  readonly number: number;
}): NodeSpec {
  const { id, hostname, zone, number } = args;
  return { id, hostname: nodeHostnameOf(hostname, number), zone, number, joining: true };
}
