import { noMaintenance } from "@holdfast/controller/services/maintenance/maintenance-record.ts";
import type { ManagedServiceObject } from "@holdfast/controller/services/service/managed-service.ts";

/** A running service without pending work. */
export function idleService(id: string, organizationId: string): ManagedServiceObject {
  const now = Date.now();
  const nodeId = `${id}-1`;
  const hostname = `${id}.local.holdfast.test`;
  return {
    metadata: { id, name: id, organizationId, generation: 1, createdAt: now, updatedAt: now },
    spec: {
      databaseType: "postgresql",
      version: "17",
      planName: "tier-1",
      storageSizeGb: 1,
      storageTier: "standard",
      zone: "local",
      allowedCidrs: ["127.0.0.0/8"],
      parameters: {},
      ttlHours: null,
      expiresAt: null,
      deletionProtection: false,
      tags: {},
      hostname,
      port: 5432,
      nodes: [{ id: nodeId, hostname, zone: "local" }],
      power: "on",
      image: "",
      maintenanceWindow: null,
      restartCount: 0,
      instanceGeneration: 1,
    },
    status: {
      state: "Running",
      operationId: null,
      primaryNodeId: nodeId,
      term: 1,
      nodes: [{ id: nodeId, status: "Running", address: "127.77.0.1", publicAddress: "127.77.0.1" }],
      health: { status: "healthy", since: now, reason: "", checks: [] },
      error: null,
      observedGeneration: 1,
      expiryWarnings: [],
      announcedProtectedExpiry: false,
      maintenance: noMaintenance,
    },
  };
}
