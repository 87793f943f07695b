import { create } from "@bufbuild/protobuf";
import type { Handlers } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { upgradesData } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { CheckEngineUpgradeSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { type MaintenanceService, type Upgrade, UpgradeSchema } from "@holdfast/proto/holdfast/v1/maintenance_pb.ts";
import { mutate } from "#access/mutate.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { operationMessage } from "#operation/operation-message.ts";
import type { OperationObject } from "#operation/operation.ts";
import type { EngineTasks } from "../service/engine-task.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { operationMembers } from "../service/operation-members.ts";
import type { ServiceAccess } from "../service/service-access.ts";
import { refuseWhileBusy } from "../service/service-commands.ts";
import { beginUpgrade, addMaintenance } from "./begin-maintenance.ts";
import { type MaintenanceContextDeps, maintenanceContext } from "./maintenance-context.ts";
import { planVersionUpgrade, requireNewer, type UpgradeFinding, type UpgradeObstacle } from "./upgrade-plan.ts";
import { serviceOperations } from "../service/service-operations.ts";

export interface UpgradeRequestDeps extends MaintenanceContextDeps {
  readonly begin: () => UnitOfWork;
  readonly services: Collection<ManagedServiceObject>;
  readonly operations: Collection<OperationObject>;
  readonly access: ServiceAccess;
  readonly tasks: EngineTasks;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** The RPC that upgrades a service to another version of its engine. */
export function upgradeRequest(deps: UpgradeRequestDeps): Handlers<typeof MaintenanceService>["upgradeManagedService"] {
  const { access, clock, tasks } = deps;

  /** Obstacles in the data of a running engine. For a stopped engine the plan reports `not_ready`. */
  async function obstaclesIn(
    service: ManagedServiceObject,
    version: string,
    signal: AbortSignal,
  ): Promise<readonly UpgradeObstacle[]> {
    if (!upgradesData(service.spec.databaseType) || service.status.state !== "Running") return [];
    const value = create(CheckEngineUpgradeSchema, { version });
    const { obstacles } = await tasks.run(service, { case: "checkEngineUpgrade", value }, signal);
    return obstacles;
  }

  const mutation = {
    action: "managed-service.upgrade",
    kind: "managed-service",
    visibleIn: [deps.services, deps.operations],
  } as const;
  return ({ serviceId, version, checkOnly, acceptTextOrderChange: acceptsTextOrder }, call) =>
    mutate(deps, call, mutation, async (unit) => {
      const service = access.require(serviceId, call);
      const { object } = service;
      const current = (await access.inProgress(object, call.signal))?.object;
      const inFlight = current && serviceOperations.upgrade.workOf(current)?.version;
      if (inFlight?.to === version) return { unchanged: upgradeMessage(object, inFlight.from, version, [], current) };
      if (object.metadata.deletionRequestedAt !== undefined)
        throw new HoldfastError("WRONG_STATE", "The service is being deleted.", {
          members: operationMembers(object, current),
        });
      requireNewer(object, version);
      const context = maintenanceContext(object, deps, clock.now());
      const obstacles = await obstaclesIn(object, version, call.signal);
      const { findings, image } = planVersionUpgrade(object, version, context, obstacles, acceptsTextOrder);
      const from = object.spec.version;
      if (checkOnly) return { unchanged: upgradeMessage(object, from, version, findings) };
      refuseWhileBusy(object, current);
      const [obstacle] = findings.filter(({ blocking }) => blocking);
      if (obstacle !== undefined || image === undefined)
        throw new HoldfastError(
          obstacle?.code === "not_ready" ? "WRONG_STATE" : "NOT_POSSIBLE",
          obstacle?.message ?? "",
          {
            members: operationMembers(object, undefined),
          },
        );
      const request = { operationId: deps.newId(), now: clock.now(), acceptsTextOrder };
      const start = beginUpgrade(object, { version, image }, context, request);
      addMaintenance(unit, service, start);
      return { id: serviceId, response: upgradeMessage(object, from, version, findings, start.operation) };
    });
}

function upgradeMessage(
  { metadata }: ManagedServiceObject,
  fromVersion: string,
  toVersion: string,
  findings: readonly UpgradeFinding[],
  operation?: OperationObject,
): Upgrade {
  return create(UpgradeSchema, {
    serviceId: metadata.id,
    fromVersion,
    toVersion,
    findings: [...findings],
    ...(operation && { operation: operationMessage(operation) }),
  });
}
