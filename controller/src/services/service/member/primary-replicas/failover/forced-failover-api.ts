import { type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { FailoverService } from "@holdfast/proto/holdfast/admin/v1/failover_pb.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { OperationObject } from "#operation/operation.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { managedServiceKind, type ManagedServiceObject } from "../../../managed-service.ts";
import { writeFailover } from "./automatic-failover.ts";
import { forceFailover } from "./forced-failover.ts";
import { positionsOf } from "../replication/log-position.ts";
import { tryReadReplication } from "../replication/read-replication.ts";
import { nodePositions } from "./forced-failover.ts";
import { fencedGenerationOf } from "./suspicion.ts";
import { mutate } from "#access/mutate.ts";

export interface ForcedFailoverApiDeps {
  readonly begin: () => UnitOfWork;
  readonly services: Collection<ManagedServiceObject>;
  readonly operations: Collection<OperationObject>;
  readonly fleet: Pick<Fleet, "run" | "session" | "observation">;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** The admin RPCs of forced failovers: an operator makes a replica the primary even if it lacks data. */
export function createForcedFailoverApi(deps: ForcedFailoverApiDeps): ServedService {
  const { services, operations, fleet, clock } = deps;

  function find(serviceId: string, nodeId: string) {
    const service = services.get(serviceId);
    if (service === undefined) throw new HoldfastError("SERVICE_NOT_FOUND", "There is no such service.");
    const node = service.object.spec.nodes.find(({ id }) => id === nodeId);
    if (node === undefined) throw new HoldfastError("OBJECT_NOT_FOUND", "The service has no such node.");
    return { service, node };
  }

  function oldPrimary({ status: { primaryNodeId: id } }: ManagedServiceObject) {
    const fencedGeneration = fencedGenerationOf(fleet.observation(id)?.instance);
    return { isConnected: fleet.session(id) !== undefined, fencedGeneration };
  }

  async function readPositions(service: ManagedServiceObject, chosen: string, signal: AbortSignal) {
    const queries = service.spec.nodes.map(
      async ({ id }) => [id, await tryReadReplication(service, id, deps, signal)] as const,
    );
    const responses = (await Promise.all(queries)).flatMap(([id, has]) =>
      has === undefined ? [] : [[id, has] as const],
    );
    return nodePositions(service, chosen, new Map(responses), positionsOf(service));
  }

  const handlers: Handlers<typeof FailoverService> = {
    forceFailover: ({ serviceId, nodeId, acceptLoss }, call) =>
      mutate(
        deps,
        call,
        { action: "node.force-failover", kind: "managed-service", visibleIn: [services] },
        async (unit) => {
          const { service, node } = find(serviceId, nodeId);
          const { object } = service;
          const now = clock.now();
          const change = forceFailover(object, node, oldPrimary(object), { operationId: deps.newId(), now });
          const positions = await readPositions(object, nodeId, call.signal);
          if (!positions.some((each) => each.nodeId === nodeId && each.answers === true))
            throw new HoldfastError("MACHINE_UNREACHABLE", "The replica does not respond.");
          if (!acceptLoss) return { unchanged: { positions } };
          const { after, operation } = change;
          if (operation === undefined) unit.update(managedServiceKind, service, after);
          else await writeFailover(unit, service, { after, operation, reason: "forced", now }, operations, call.signal);
          return {
            id: serviceId,
            result: { positions, operationId: operation?.metadata.id ?? object.status.operationId ?? "" },
          };
        },
      ),
  };
  return serve(FailoverService, handlers);
}
