import { type ManagedServiceObject, serviceSubject } from "../../service/managed-service.ts";
import { nodeHostnameOf } from "../../service/network/service-names.ts";
import type { ServiceOrigin } from "../../service/service-origin.ts";
import type { NewServiceContext } from "../../service/new-service.ts";
import type { ServiceDesign } from "../../service/service-creation.ts";
import { noMaintenance } from "../../maintenance/maintenance-record.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import type { UndeleteRecord } from "../archive/archive.ts";
import { newOperation } from "#operation/operation-definition.ts";
import { serviceOperations } from "../../service/service-operations.ts";
import { firstNodes, isCluster } from "../../service/member/peers/first-peer.ts";

type RecreationContext = Pick<NewServiceContext, "now" | "nodeId" | "operationId">;

/**
 * A deleted service, restored from its backup, with its id, hostname, users and passwords, under a higher term. It has
 * no time to live, because the previous one has expired.
 */
export function undeleted(
  { service, users, backupId }: UndeleteRecord,
  name: string | undefined,
  context: RecreationContext,
): ServiceDesign {
  const from = { kind: "undelete", backupId: backupId ?? "", targetTime: null } as const;
  const renamed = { ...service, metadata: { ...service.metadata, name: name ?? service.metadata.name } };
  return { ...recreated(renamed, from, context), users };
}

/** A deleted service on its retained machines, with their data and image; otherwise as `undeleted`. */
export function undeletedOnDisk(
  deleted: UndeleteRecord,
  name: string | undefined,
  machines: readonly MachineObject[],
  context: RecreationContext,
): ServiceDesign {
  const { spec, status } = deleted.service;
  const { service, operation, users } = undeleted(deleted, name, context);
  const { origin: _, guestKernel: __, machineStarts: ___, ...restoredSpec } = service.spec;
  const { image = "", guestKernel } = machines[0]?.spec ?? {};
  const nodes = status.nodes.map((node) => ({ ...node, status: "Stopped" as const }));
  return {
    service: {
      ...service,
      spec: { ...restoredSpec, nodes: spec.nodes, image, ...(guestKernel !== undefined && { guestKernel }) },
      status: { ...service.status, primaryNodeId: status.primaryNodeId, nodes },
    },
    operation,
    users,
    hasMachines: true,
  };
}

/** A service with its previous id and spec, on a new machine and from a backup. */
export function recreated(
  before: ManagedServiceObject,
  from: Pick<ServiceOrigin, "kind" | "backupId" | "targetTime" | "toLogEnd">,
  context: RecreationContext,
): Omit<ServiceDesign, "users"> {
  const { now, nodeId, operationId } = context;
  const { spec, status } = before;
  const { id: serviceId, organizationId } = before.metadata;
  const { deletionRequestedAt: _, ...metadata } = before.metadata;
  // The service starts with one node, without the state of its previous nodes.
  // Attachments end before their service, and machines of apps may have other addresses now.
  const { finalBackup: _f, closed: _c, canary: _t, nextNodeNumber: _n, primaryChange: _s, ...rest } = spec;
  const { attachedClients: _a, ...inherited } = rest;
  const hostname = nodeHostnameOf(spec.hostname, 1);
  const origin: ServiceOrigin = {
    ...from,
    restoreId: operationId,
    serviceId,
    finishedAt: null,
  };
  const instanceGeneration = spec.instanceGeneration + 1;
  const service: ManagedServiceObject = {
    metadata: { ...metadata, generation: metadata.generation + 1, updatedAt: now },
    spec: {
      ...inherited,
      ttlHours: null,
      expiresAt: null,
      power: "on",
      ...firstNodes({ id: nodeId, hostname, zone: spec.zone }, spec.databaseType),
      instanceGeneration,
      origin,
    },
    status: {
      state: "Pending",
      operationId,
      primaryNodeId: isCluster(spec.databaseType) ? "" : nodeId,
      term: status.term + 1,
      nodes: [{ id: nodeId, status: "Provisioning", address: "", publicAddress: "" }],
      health: { status: "unknown", since: now, reason: "The machine is being created.", checks: [] },
      error: null,
      observedGeneration: 0,
      expiryWarnings: [],
      announcedProtectedExpiry: false,
      maintenance: noMaintenance,
    },
  };
  const subject = serviceSubject(serviceId);
  return {
    service,
    operation: newOperation({ id: operationId, subject, organizationId, type: serviceOperations.create, now }),
  };
}
