import {
  type ManagedServiceObject,
  type ManagedServiceSpec,
  type ManagedServiceStatus,
  type NodeSpec,
  serviceSubject,
} from "@holdfast/controller/services/service/managed-service.ts";
import { noMaintenance } from "@holdfast/controller/services/maintenance/maintenance-record.ts";
import type { OperationObject } from "@holdfast/controller/operation/operation.ts";
import type { Metadata } from "@holdfast/controller/kernel/store/resource.ts";
import { newOperation } from "@holdfast/controller/operation/operation-definition.ts";
import { serviceOperations } from "@holdfast/controller/services/service/service-operations.ts";

/** The only node of the service below. */
export const node = { id: "node-1", role: "primary", hostname: "db-1.local", zone: "local" } as const;

/** A PostgreSQL as its creation leaves it, with the operation that creates it. */
export function newServiceObject(): { service: ManagedServiceObject; operation: OperationObject } {
  const metadata = { id: "service-1", name: "db", organizationId: "org", generation: 1, createdAt: 0, updatedAt: 0 };
  const operation = newOperation({
    id: "op-0",
    subject: serviceSubject("service-1"),
    organizationId: "org",
    type: serviceOperations.create,
    now: 0,
  });
  const service: ManagedServiceObject = {
    metadata,
    spec: {
      databaseType: "postgresql",
      version: "17",
      planName: "tier-1",
      storageSizeGb: 1,
      storageTier: "maxiops",
      zone: "local",
      allowedCidrs: [],
      parameters: {},
      ttlHours: null,
      expiresAt: null,
      deletionProtection: false,
      tags: {},
      hostname: "db.local",
      port: 5432,
      nodes: [node],
      power: "on",
      image: "",
      maintenanceWindow: null,
      restartCount: 0,
      instanceGeneration: 1,
    },
    status: {
      state: "Pending",
      operationId: "op-0",
      primaryNodeId: node.id,
      term: 1,
      nodes: [{ id: node.id, status: "Provisioning", address: "", publicAddress: "" }],
      health: { status: "unknown", since: 0, reason: "", checks: [] },
      error: null,
      observedGeneration: 0,
      expiryWarnings: [],
      announcedProtectedExpiry: false,
      maintenance: noMaintenance,
    },
  };
  return { service, operation };
}

/** A service that is Running and healthy without an operation, with changes to spec and status. */
export function runningService(
  metadata: Partial<Metadata> = {},
  spec: Partial<ManagedServiceSpec> = {},
  status: Partial<ManagedServiceStatus> = {},
): ManagedServiceObject {
  const { service } = newServiceObject();
  const health = { status: "healthy", since: 0, reason: "", checks: [] } as const;
  return {
    metadata: { ...service.metadata, ...metadata },
    spec: { ...service.spec, ...spec },
    status: { ...service.status, state: "Running", operationId: null, health, ...status },
  };
}

/** The primary of a service, whose machine has this id. */
export function nodeOf(id: string): NodeSpec {
  return { ...node, id };
}
