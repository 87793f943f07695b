import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { type FieldFault, HoldfastError, invalid } from "@holdfast/common/errors.ts";
import { NodeRole } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { NodeService } from "@holdfast/proto/holdfast/v1/node_pb.ts";
import { requireUnlimited } from "#access/caller.ts";
import { mutate } from "#access/mutate.ts";
import type { Quotas } from "#access/organization/quotas.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import type { Fleet } from "#fleet/fleet.ts";
import { operationMessage } from "#operation/operation-message.ts";
import { operationKind, type OperationObject } from "#operation/operation.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork, Changes } from "#kernel/store/unit-of-work.ts";
import { managedServiceKind, type ManagedServiceObject, type NodeSpec } from "../managed-service.ts";
import { nodeMessage } from "../managed-service-message.ts";
import type { ServiceAccess } from "../service-access.ts";
import { refuseWhileBusy } from "../service-commands.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { withReplicationSecret } from "./new-replica.ts";
import { addNodes, markNodeForRemoval } from "./change-nodes.ts";
import { memberCommandsOf } from "./member-commands.ts";
import type { NodeChange } from "./node-change.ts";

export interface NodeApiDeps {
  readonly begin: () => UnitOfWork;
  readonly services: Collection<ManagedServiceObject>;
  readonly operations: Collection<OperationObject>;
  readonly access: ServiceAccess;
  readonly quotas: Pick<Quotas, "claim">;
  readonly catalog: CatalogData;
  readonly sealer: Pick<Sealer, "seal">;
  readonly fleet: Fleet;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** The RPCs of a service's nodes. */
export function createNodeApi(deps: NodeApiDeps): ServedService {
  const { access, services, operations, catalog, clock } = deps;

  /** Changes a Running service without an operation in progress, and returns the message that `response` builds. */
  function change<A>(
    { serviceId, action }: { readonly serviceId: string; readonly action: string },
    call: Call,
    design: (service: ManagedServiceObject, unit: Changes) => NodeChange | Promise<NodeChange>,
    response: (designed: NodeChange) => A & object,
  ): Promise<A> {
    const mutation = { action: `node.${action}`, kind: "managed-service", visibleIn: [services, operations] } as const;
    return mutate(deps, call, mutation, async (unit) => {
      const service = access.requireRunning(serviceId, call);
      refuseWhileBusy(service.object, (await access.inProgress(service.object, call.signal))?.object);
      const designed = await design(service.object, unit);
      unit.create(operationKind, designed.operation);
      unit.update(managedServiceKind, service, designed.after);
      const message = response(designed);
      return { id: serviceId, result: message, stored: message as never };
    });
  }

  const operationArgs = () => ({ operationId: deps.newId(), now: clock.now() });

  async function nodeResponse(service: Stored<ManagedServiceObject>, node: NodeSpec, call: Call) {
    return nodeMessage(service.object, node, (await access.inProgress(service.object, call.signal))?.object);
  }

  const handlers: Handlers<typeof NodeService> = {
    addNode: ({ serviceId, zone, role, count = 1 }, call) => {
      requireUnlimited(call);
      return change(
        { serviceId, action: "add" },
        call,
        async (service, unit) => {
          if (role !== NodeRole.REPLICA)
            throw invalid({ field: "role", code: "not_replica", detail: "must be replica" });
          const nodeIds = Array.from({ length: count }, () => deps.newId());
          const designed = addNodes(service, { ...operationArgs(), nodeIds, zone });
          const storageGb = service.spec.storageSizeGb * count;
          await deps.quotas.claim(unit, service.metadata.organizationId, { storageGb });
          return { ...designed, after: withReplicationSecret(designed.after, deps.sealer) };
        },
        ({ after, node, operation }) => nodeMessage(after, node, operation),
      );
    },

    getNode: ({ serviceId, nodeId }, call) => {
      const service = access.require(serviceId, call);
      return nodeResponse(service, requireNode(service.object, nodeId), call);
    },

    removeNode: async ({ serviceId, nodeId }, call) => {
      const service = access.require(serviceId, call);
      const node = requireNode(service.object, nodeId);
      if (node.leaving === true) return nodeResponse(service, node, call);
      return change(
        { serviceId, action: "remove" },
        call,
        (object) => {
          const removed = requireNode(object, nodeId);
          const designed = markNodeForRemoval(object, removed, operationArgs());
          memberCommandsOf(object).requireSpace?.(object, removed, deps);
          return designed;
        },
        ({ after, node: removed, operation }) => nodeMessage(after, removed, operation),
      );
    },

    getReplicationStatus: ({ serviceId, nodeId }, call) => {
      const { object } = access.require(serviceId, call);
      return memberCommandsOf(object).replicationStatus(object, requireNode(object, nodeId), deps, call.signal);
    },

    failOver: async ({ serviceId, nodeId }, call) => {
      const { object } = access.requireRunning(serviceId, call);
      requireNode(object, nodeId);
      return change(
        { serviceId, action: "failover" },
        call,
        async (service) => {
          const commands = memberCommandsOf(service);
          const failOver = () => commands.failOver(service, requireNode(service, nodeId), operationArgs());
          failOver();
          await commands.requireReadyForSwitchover(service, nodeId, deps, call.signal);
          // The time of the operation begins after the wait.
          return failOver();
        },
        ({ operation }) => operationMessage(operation),
      );
    },
  };

  return serve(NodeService, handlers, {
    addNode: ({ zone }): readonly FieldFault[] => {
      const zones = catalog.zones.map((offered) => offered.zone);
      if (zone === undefined || zones.includes(zone)) return [];
      return [{ field: "zone", pointer: "/zone", code: "unknown", detail: `must be one of ${zones.join(", ")}` }];
    },
  });
}

function requireNode({ spec }: ManagedServiceObject, nodeId: string): NodeSpec {
  const node = spec.nodes.find(({ id }) => id === nodeId);
  if (node === undefined) throw new HoldfastError("OBJECT_NOT_FOUND", "The service has no such node.");
  return node;
}
