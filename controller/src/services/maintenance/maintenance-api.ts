import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import { MaintenanceService } from "@holdfast/proto/holdfast/v1/maintenance_pb.ts";
import { mutate } from "#access/mutate.ts";
import { versionNumber } from "#catalog/version-number.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { refuseWhileBusy } from "../service/service-commands.ts";
import { operationMembers } from "../service/operation-members.ts";
import { operationMessage } from "#operation/operation-message.ts";
import { beginMaintenance, addMaintenance } from "./begin-maintenance.ts";
import { defaultWindow, nextWindow, windowMessage } from "./maintenance-window.ts";
import { updateMessage } from "./maintenance-message.ts";
import { maintenanceContext } from "./maintenance-context.ts";
import { engineVersionIn } from "./node-image.ts";
import { type MaintenanceContext, type PendingUpdate, restartId } from "./pending-update.ts";
import { pendingUpdates } from "./pending-updates.ts";
import { type UpgradeRequestDeps, upgradeRequest } from "./upgrade-request.ts";
import { obstacleOf, unreachableHostOf } from "./update-schedule.ts";
import { serviceOperations } from "../service/service-operations.ts";

export interface MaintenanceApiDeps extends UpgradeRequestDeps {
  /** True while an operator pauses automatic maintenance. */
  readonly maintenancePaused: () => boolean;
}

/** The RPCs of a service's maintenance. */
export function createMaintenanceApi(deps: MaintenanceApiDeps): ServedService {
  const { access, clock } = deps;
  const see = [deps.services, deps.operations];

  const handlers: Handlers<typeof MaintenanceService> = {
    getMaintenance: async ({ serviceId }, call) => {
      const { object } = access.require(serviceId, call);
      const now = clock.now();
      const context = maintenanceContext(object, deps, now);
      const operation = (await access.inProgress(object, call.signal))?.object;
      const { maintenanceWindow } = object.spec;
      const window = maintenanceWindow ?? defaultWindow(serviceId);
      const { from, until } = nextWindow(window, now);
      const engineVersion = engineVersionOf(object, context);
      return {
        serviceId,
        window: windowMessage(window),
        windowIsDefault: maintenanceWindow === null,
        nextWindowFrom: timestampFromMs(from),
        nextWindowUntil: timestampFromMs(until),
        updates: pendingUpdates(object, context).map(updateMessage),
        ...(context.image === "" ? {} : { image: context.image }),
        ...(context.guestKernel === "" ? {} : { guestKernel: context.guestKernel }),
        ...(engineVersion === "" ? {} : { engineVersion }),
        ...(serviceOperations.maintenance.is(operation) ? { operation: operationMessage(operation) } : {}),
        // oxlint-disable-next-line holdfast/names -- a member of the API
        ...(deps.maintenancePaused() ? { held: pausedMessage } : {}),
      };
    },

    applyMaintenance: ({ serviceId, updateIds, acceptTextOrderChange: acceptsTextOrder }, call) =>
      mutate(deps, call, { action: "maintenance.apply", kind: "managed-service", visibleIn: see }, async (unit) => {
        const service = access.require(serviceId, call);
        const current = (await access.inProgress(service.object, call.signal))?.object;
        if (serviceOperations.maintenance.is(current)) return { unchanged: operationMessage(current) };
        if (service.object.metadata.deletionRequestedAt !== undefined)
          throw new HoldfastError("WRONG_STATE", "The service is being deleted.", {
            members: operationMembers(service.object, current),
          });
        refuseWhileBusy(service.object, current);
        const now = clock.now();
        const context = maintenanceContext(service.object, deps, now);
        const updates = chosenUpdates(service.object, context, updateIds, acceptsTextOrder);
        const request = { operationId: deps.newId(), automatic: false, now, acceptsTextOrder };
        const start = beginMaintenance(service.object, updates, context, request);
        addMaintenance(unit, service, start);
        return { id: serviceId, response: operationMessage(start.operation) };
      }),

    upgradeManagedService: upgradeRequest(deps),
  };
  return serve(MaintenanceService, handlers);
}

const pausedMessage = "An operator of the platform has paused maintenance. Updates can still be applied by request.";

/**
 * The updates that a request applies; without ids, all that can be applied. An update that was rolled back is applied
 * again; an update that changes the sort order of text needs `accept_text_order_change`. Throws INVALID_REQUEST for an
 * id that is not pending, NOTHING_PENDING, and WRONG_STATE for an obstacle.
 */
function chosenUpdates(
  service: ManagedServiceObject,
  context: MaintenanceContext,
  ids: readonly string[],
  acceptsTextOrder: boolean,
): PendingUpdate[] {
  const members = operationMembers(service, undefined);
  const pending = pendingUpdates(service, context);
  const faults = ids.flatMap((id, index) =>
    pending.some((update) => update.id === id)
      ? []
      : [{ field: `update_ids[${index}]`, code: "not_pending", detail: "is not a pending update of the service" }],
  );
  if (pending.length === 0 && ids.length === 0)
    throw new HoldfastError("NOTHING_PENDING", "No update of the service is pending.", { members });
  if (faults.length > 0) throw invalid(...faults);
  const obstacle = obstacleOf(service, context);
  if (obstacle !== undefined) throw new HoldfastError("WRONG_STATE", obstacle, { members });
  const selected = ids.length === 0 ? pending : pending.filter(({ id }) => ids.includes(id));
  const unaccepted = selected.filter(({ changesTextOrder }) => changesTextOrder && !acceptsTextOrder);
  const [first] = unaccepted;
  if (first !== undefined && (ids.length > 0 || selected.length === unaccepted.length))
    throw new HoldfastError("WRONG_STATE", first.blocked ?? "", { members });
  const chosen = selected.filter((update) => !unaccepted.includes(update));
  const silence = chosen.some(({ id }) => id !== restartId) ? unreachableHostOf(context) : undefined;
  if (silence !== undefined) throw new HoldfastError("WRONG_STATE", silence, { members });
  return chosen;
}

function engineVersionOf({ spec }: ManagedServiceObject, { images, image, instance }: MaintenanceContext): string {
  const currentImage = images.find(({ metadata }) => metadata.id === image);
  return versionNumber(instance?.engineVersion ?? "") || engineVersionIn(currentImage, spec.databaseType, spec.version);
}
