import { create } from "@bufbuild/protobuf";
import { type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import {
  type Configuration,
  ConfigurationSchema,
  ConfigurationService,
  ParameterStatus,
} from "@holdfast/proto/holdfast/v1/configuration_pb.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import type { EngineOffer } from "#catalog/engine-offer.ts";
import type { Fleet } from "#fleet/fleet.ts";
import { managedServiceKind, type ManagedServiceObject } from "../service/managed-service.ts";
import type { ServiceAccess } from "../service/service-access.ts";
import { beginOperation, refuseWhileBusy } from "../service/service-commands.ts";
import { canceled, findOperation, isFinished, operationKind, type OperationObject } from "#operation/operation.ts";
import { operationMessage } from "#operation/operation-message.ts";
import { whenChanged } from "#kernel/store/when-changed.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import {
  type ChangeContext,
  changedParameters,
  type ParameterStatusName,
  parameterViews,
} from "./configuration-plan.ts";
import { serviceOperations } from "../service/service-operations.ts";
import { mutate } from "#access/mutate.ts";
import { taskTarget } from "../service/member/member-roles.ts";

export interface ConfigurationApiDeps {
  readonly begin: () => UnitOfWork;
  readonly services: Collection<ManagedServiceObject>;
  readonly operations: Collection<OperationObject>;
  readonly access: ServiceAccess;
  readonly fleet: Fleet;
  readonly catalog: CatalogData;
  readonly engines: () => readonly EngineOffer[];
  readonly clock: Clock;
  readonly newId: () => string;
  /** Maximum time for which a call waits for the engine, in milliseconds. Afterwards it returns the operation. */
  readonly waitMs: number;
}

// biome-ignore format: a table, aligned so that it reads as one
const statuses: Record<ParameterStatusName, ParameterStatus> = {
  applied:         ParameterStatus.APPLIED,
  pending:         ParameterStatus.PENDING,
  pending_restart: ParameterStatus.PENDING_RESTART,
  rejected:        ParameterStatus.REJECTED,
};

/**
 * The RPCs of engine parameters. The spec has the parameters that users chose; `configuration-plan.ts` validates
 * changes and computes each parameter's effective value and status.
 */
export function createConfigurationApi(deps: ConfigurationApiDeps): ServedService {
  const { access } = deps;

  function engineOf({ spec }: ManagedServiceObject): EngineOffer {
    const engine = deps.engines().find(({ databaseType }) => databaseType === spec.databaseType);
    if (engine === undefined)
      throw new HoldfastError("NOT_SUPPORTED", `${spec.databaseType} is no longer offered here.`);
    return engine;
  }

  const primaryOn = (service: ManagedServiceObject) => deps.fleet.observation(taskTarget(service).id)?.instance;

  function contextOf(service: ManagedServiceObject): ChangeContext {
    return { engine: engineOf(service), catalog: deps.catalog, primary: primaryOn(service) };
  }

  /** `operation`: the configure operation in progress, if any. */
  function message(service: ManagedServiceObject, operation?: OperationObject): Configuration {
    const views = parameterViews({
      spec: service.spec,
      engine: engineOf(service),
      catalog: deps.catalog,
      primary: primaryOn(service),
      instances: service.spec.nodes.flatMap(({ id }) => deps.fleet.observation(id)?.instance ?? []),
    });
    const parameters = Object.entries(views).map(
      ([name, { value, default: defaultValue, status, reason, warning }]) => [
        name,
        {
          value,
          default: defaultValue,
          status: statuses[status],
          ...(reason !== undefined && { reason }),
          ...(warning !== undefined && { warning }),
        },
      ],
    );
    return create(ConfigurationSchema, {
      parameters: Object.fromEntries(parameters),
      ...(operation === undefined || isFinished(operation) ? {} : { operation: operationMessage(operation) }),
    });
  }

  const handlers: Handlers<typeof ConfigurationService> = {
    getConfiguration: async ({ serviceId }, call) => {
      const { object } = access.require(serviceId, call);
      const operation = (await access.inProgress(object, call.signal))?.object;
      return message(object, serviceOperations.configure.is(operation) ? operation : undefined);
    },

    updateConfiguration: async ({ serviceId, parameters: change }, call) => {
      const mutation = { action: "configuration.update", kind: "managed-service", visibleIn: [deps.services] } as const;
      const operationId = await mutate(deps, call, mutation, async (unit) => {
        const service = access.require(serviceId, call);
        if (service.object.metadata.deletionRequestedAt !== undefined)
          throw new HoldfastError("WRONG_STATE", "The service is being deleted.");
        const current = await access.inProgress(service.object, call.signal);
        // An operation whose parameters keep the engine from running cannot complete, so the next change cancels it.
        const superseded = serviceOperations.configure.is(current?.object) ? current : undefined;
        if (superseded === undefined) refuseWhileBusy(service.object, current?.object);
        const { parameters } = changedParameters(service.object.spec, change, contextOf(service.object));
        const { after, operation } = beginOperation(
          service.object,
          "configure",
          { parameters },
          { operationId: deps.newId(), now: deps.clock.now() },
        );
        if (superseded !== undefined)
          unit.update(operationKind, superseded, canceled(superseded.object, deps.clock.now()));
        // Only a running engine applies parameters now. A stopped engine applies them at its next start.
        if (service.object.status.state === "Running") {
          unit.create(operationKind, operation);
          unit.update(managedServiceKind, service, after);
        } else {
          const busyWith = superseded === undefined ? service.object.status.operationId : null;
          unit.update(managedServiceKind, service, { ...after, status: { ...after.status, operationId: busyWith } });
        }
        return {
          id: serviceId,
          result: service.object.status.state === "Running" ? operation.metadata.id : undefined,
        };
      });
      const isDone = () => {
        const current = deps.operations.get(operationId ?? "")?.object;
        return current !== undefined && isFinished(current);
      };
      const isApplied =
        operationId === undefined ||
        (await whenChanged(deps.operations, operationId, isDone, deps.waitMs, call.signal));
      const operation = isApplied ? undefined : await findOperation(deps.operations, operationId, call.signal);
      return message(access.require(serviceId, call).object, operation?.object);
    },
  };
  return serve(ConfigurationService, handlers, {
    updateConfiguration: ({ serviceId, parameters }, call) => {
      const service = access.find(serviceId, call)?.object;
      return service === undefined ? [] : changedParameters(service.spec, parameters, contextOf(service)).faults;
    },
  });
}
