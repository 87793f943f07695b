import { type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import {
  type ImageSchema,
  MaintenanceService,
  type ServiceMaintenanceSchema,
} from "@holdfast/proto/holdfast/admin/v1/maintenance_pb.ts";
import { type MaintenanceContextDeps, maintenanceContext } from "./maintenance-context.ts";
import { nodeImageKind, type NodeImageObject, type NodeImageSpec } from "./node-image.ts";
import { type AwaitedImage, missingOn } from "./image-offer.ts";
import { awaitedImages, pendingUpdates } from "./pending-updates.ts";
import type { HostObject } from "#fleet/host/host.ts";
import type { RefusedImage } from "./maintenance-record.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { isFinished, type OperationObject } from "#operation/operation.ts";
import { adminPage, type Cursors } from "#kernel/page/cursor.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import { serviceOperations } from "../service/service-operations.ts";
import { mutate } from "#access/mutate.ts";
import { firstMemberOf } from "../service/member/member-roles.ts";

export interface MaintenanceAdminApiDeps extends MaintenanceContextDeps {
  readonly begin: () => UnitOfWork;
  readonly services: Collection<ManagedServiceObject>;
  readonly operations: Collection<OperationObject>;
  readonly hosts: Collection<HostObject>;
  readonly cursors: Cursors;
  readonly clock: Clock;
}

/** Maximum number of hosts that a reason names. */
const namedHostsMax = 20;

/** The admin RPCs of maintenance: node images and their urgency, and pending updates of the fleet. */
export function createMaintenanceAdminApi(deps: MaintenanceAdminApiDeps): ServedService {
  const { nodeImages, hosts, services, cursors, clock } = deps;

  function imageMessage({ metadata, spec, status }: NodeImageObject): MessageInitShape<typeof ImageSchema> {
    const { urgent } = spec;
    let from = 0;
    let rolledBack = 0;
    for (const { object } of services.values()) {
      const { image, guestKernel } = maintenanceContext(object, deps, 0);
      if (image === metadata.id || guestKernel === metadata.id) from += 1;
      if (refusedOf(object).some((refused) => refused.image === metadata.id)) rolledBack += 1;
    }
    return {
      id: metadata.id,
      firstSeenAt: timestampFromMs(metadata.createdAt),
      engines: [...spec.engines],
      newestOf: [...status.newestOf],
      services: from,
      rolledBack,
      urgent: urgent !== null,
      missingOn: missingOn({ metadata, spec, status }, objectsOf(nodeImages), objectsOf(hosts)).slice(0, namedHostsMax),
      ...(urgent && {
        noticeHours: urgent.noticeHours,
        reason: urgent.reason,
        urgentSince: timestampFromMs(urgent.markedAt),
      }),
    };
  }

  const mark = (image: string, urgent: NodeImageSpec["urgent"], call: Call) =>
    mutate(
      deps,
      call,
      {
        action: urgent === null ? "image.unmark-urgent" : "image.mark-urgent",
        kind: "node-image",
        visibleIn: [nodeImages],
      },
      async (unit) => {
        const stored = await nodeImages.getCurrent(image, call.signal);
        if (stored === undefined) throw new HoldfastError("OBJECT_NOT_FOUND", `There is no image ${image}.`);
        const { metadata, spec } = stored.object;
        const after: NodeImageObject = {
          ...stored.object,
          metadata: nextMetadata(metadata, clock.now()),
          spec: { ...spec, urgent },
        };
        unit.update(nodeImageKind, stored, after);
        return { id: image, result: imageMessage(after) };
      },
    );

  function serviceMessage(
    service: ManagedServiceObject,
    now: number,
  ): MessageInitShape<typeof ServiceMaintenanceSchema> {
    const { metadata } = service;
    const context = maintenanceContext(service, deps, now);
    const updates = pendingUpdates(service, context);
    const times = updates.flatMap(({ applyAt }) => (applyAt === null ? [] : [applyAt]));
    const operation = maintenanceOf(service);
    const refused = refusedOf(service);
    const awaited = awaitedImages(service, context);
    return {
      serviceId: metadata.id,
      organizationId: metadata.organizationId,
      image: context.image,
      guestKernel: context.guestKernel,
      updateIds: updates.map(({ id }) => id),
      urgent: updates.some(({ urgent }) => urgent),
      blockedReason: updates.find(({ blocked }) => blocked !== null)?.blocked ?? "",
      ...(times.length > 0 && { applyAt: timestampFromMs(Math.min(...times)) }),
      ...(operation && {
        operationId: operation.metadata.id,
        step: operation.status.step ?? "",
        progressPct: operation.status.progressPct,
      }),
      snapshot: snapshotOf(service),
      leftSnapshotReason: leftSnapshotOf(service)?.reason ?? "",
      awaitedImage: awaited[0]?.image.metadata.id ?? "",
      awaitedReason: awaited.map(awaitedReason).join(" "),
      rolledBack: refused.map(({ image }) => image).join(", "),
      rolledBackReason: [...new Set(refused.map(({ message }) => message))].join(" "),
    };
  }

  function maintenanceOf({ status }: ManagedServiceObject): OperationObject | undefined {
    const operation = deps.operations.get(status.operationId ?? "")?.object;
    return serviceOperations.maintenance.is(operation) && !isFinished(operation) ? operation : undefined;
  }

  function snapshotOf(service: ManagedServiceObject): string {
    const { spec, status } = deps.machines.get(firstMemberOf(service).id)?.object ?? {};
    const { name, outcome = "none" } = status?.snapshot ?? {};
    return name !== undefined && name === spec?.snapshot?.name && outcome !== "none" ? name : "";
  }

  const leftSnapshotOf = (service: ManagedServiceObject) =>
    deps.machines.get(firstMemberOf(service).id)?.object.status.staleSnapshots?.[0];

  const handlers: Handlers<typeof MaintenanceService> = {
    listImages: async ({ page }, call) => {
      const { items, ...next } = adminPage(nodeImages, () => true, page, call, cursors, "images");
      return { images: items.map(imageMessage), ...next };
    },

    markImageUrgent: ({ image, noticeHours, reason }, call) =>
      mark(image, { noticeHours, reason, markedAt: clock.now() }, call),

    unmarkImageUrgent: ({ image }, call) => mark(image, null, call),

    listMaintenance: async ({ page }, call) => {
      const now = clock.now();
      const isListed = (service: ManagedServiceObject) => {
        if (refusedOf(service).length > 0 || maintenanceOf(service) !== undefined || snapshotOf(service) !== "")
          return true;
        if (leftSnapshotOf(service) !== undefined) return true;
        const context = maintenanceContext(service, deps, now);
        return pendingUpdates(service, context).length > 0 || awaitedImages(service, context).length > 0;
      };
      const { items, ...next } = adminPage(services, isListed, page, call, cursors, "maintenance");
      return { services: items.map((service) => serviceMessage(service, now)), ...next };
    },
  };
  return serve(MaintenanceService, handlers);
}

/** The image and kernel that were last tried on the service and rolled back, if any. */
function refusedOf({ status: { maintenance } }: ManagedServiceObject): RefusedImage[] {
  return [maintenance.refused, maintenance.refusedGuestKernel].filter((refused) => refused != null);
}

/** The reason, for operators, why the service does not get the image, with the command that installs it. */
function awaitedReason({ image, missingOn: hosts }: AwaitedImage): string {
  const { urgent } = image.spec;
  const suite = image.metadata.id.split("-")[0];
  const [named, more] = [hosts.slice(0, namedHostsMax).join(", "), hosts.length > namedHostsMax ? " and others" : ""];
  const urgencyText = urgent === null ? "" : ` It is urgent: ${urgent.reason}`;
  return `The image is missing on ${named}${more}: run holdfast images update ${suite} there.${urgencyText}`;
}

function objectsOf<R>(collection: { values(): Iterable<{ readonly object: R }> }): R[] {
  return [...collection.values()].map(({ object }) => object);
}
