import { type Call, type ServedService, serve } from "@holdfast/common/call.ts";
import { defaultDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import { AppService } from "@holdfast/proto/holdfast/v1/app_pb.ts";
import { mayTouch, organizationOf, requireUnlimited } from "#access/caller.ts";
import { mutate } from "#access/mutate.ts";
import type { Organization } from "#access/organization/organization.ts";
import type { Quotas } from "#access/organization/quotas.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { newMetadata, nextMetadata, type Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork, Changes } from "#kernel/store/unit-of-work.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import type { ServiceAccess } from "#services/service/service-access.ts";
import { appKind, type AppObject, attachmentsMax, type AttachmentSpec } from "./app.ts";
import { appMessage, attachmentMessage } from "./app-message.ts";
import type { ChangeApp } from "./app-access.ts";
import { exactUrlFaults } from "./checked-url.ts";
import { type DomainApiDeps, domainHandlers } from "./domain-api.ts";

export interface AppApiDeps extends Omit<DomainApiDeps, "change" | "apps"> {
  readonly apps: Collection<AppObject>;
  readonly serviceAccess: ServiceAccess;
  readonly services: Pick<Collection<ManagedServiceObject>, "get">;
  readonly organizations: Pick<Collection<Organization>, "untilRevision">;
  readonly quotas: Pick<Quotas, "claim">;
  /** True if the app's end users are in the database of the attachment. */
  readonly isInUse: (appId: string, attachmentId: string) => boolean;
  /** Removes the app's sign-in in the unit of work that deletes the app. */
  readonly removeSignIn: (unit: Changes, appId: string, signal: AbortSignal) => Promise<void>;
  readonly begin: () => UnitOfWork;
  readonly cursors: Cursors;
}

const kind = appKind.name;

/** The RPCs of apps, and of their attachments and domains. */
export function createAppApi(deps: AppApiDeps): ServedService {
  const { apps, access, serviceAccess, services, clock, cursors } = deps;
  const isRunning = (serviceId: string) => services.get(serviceId)?.object.status.state === "Running";

  const change: ChangeApp = (appId, call, { action, detail }, edit, response) =>
    mutate(deps, call, { action, kind, visibleIn: [apps] }, async (unit) => {
      const before = await access.getCurrent(appId, call);
      const after = {
        ...before.object,
        metadata: nextMetadata(before.object.metadata, clock.now()),
        spec: edit(before.object),
      };
      unit.update(appKind, before, after);
      return { id: appId, detail, result: after, stored: response };
    });

  function attachable(serviceId: string, call: Call): Stored<ManagedServiceObject> {
    const service = serviceAccess.require(serviceId, call);
    if (service.object.spec.databaseType === "postgresql") return service;
    throw new HoldfastError(
      "ATTACHMENT_NOT_POSTGRESQL",
      `${service.object.spec.databaseType} cannot store users of apps; attach a PostgreSQL service.`,
    );
  }

  return serve(AppService, {
    ...domainHandlers({ ...deps, change }),

    createApp: (request, call) => {
      requireUnlimited(call);
      const organizationId = organizationOf(call);
      requireUrl(request.homeUrl);
      return mutate(deps, call, { action: "app.create", kind, visibleIn: [deps.organizations, apps] }, async (unit) => {
        const app: AppObject = {
          metadata: newMetadata(deps.newId(), clock.now(), { name: request.name, organizationId }),
          spec: { homeUrl: request.homeUrl ?? null, attachments: [], domains: [] },
          status: {},
        };
        const response = appMessage(app, isRunning);
        unit.create(appKind, app);
        unit.claimName(appKind, organizationId, request.name, app.metadata.id);
        await deps.quotas.claim(unit, organizationId, { apps: 1 });
        return { id: app.metadata.id, response };
      });
    },

    listApps: async (request, call) => {
      const page = { ...cursors.open(call, "apps", null, request), organizationId: organizationOf(call) };
      const { items, next } = apps.page(({ metadata }) => mayTouch(call, appKind.name, metadata.id), page);
      return { apps: items.map(({ object }) => appMessage(object, isRunning)), ...page.next(next) };
    },

    getApp: async ({ appId }, call) => appMessage(access.require(appId, call).object, isRunning),

    updateApp: async (request, call) => {
      const paths = request.updateMask?.paths ?? [];
      if (paths.length === 0)
        throw invalid({ field: "update_mask", code: "required", detail: "must name at least one field" });
      const unknownPath = paths.find((path) => path !== "home_url");
      if (unknownPath !== undefined)
        throw invalid({ field: unknownPath, code: "unknown_field", detail: "cannot be changed" });
      requireUrl(request.homeUrl);
      const app = await change(request.appId, call, { action: "app.update" }, ({ spec }) => ({
        ...spec,
        homeUrl: request.homeUrl ?? null,
      }));
      return appMessage(app, isRunning);
    },

    deleteApp: ({ appId }, call) =>
      mutate(deps, call, { action: "app.delete", kind, visibleIn: [apps] }, async (unit) => {
        const app = await access.getCurrent(appId, call);
        const { organizationId, name } = app.object.metadata;
        await deps.removeSignIn(unit, appId, call.signal);
        unit.remove(appKind, app);
        unit.releaseName(appKind, organizationId, name);
        return { id: appId, result: {} };
      }),

    createAttachment: async ({ appId, serviceId, databaseName = defaultDatabase }, call) => {
      access.require(appId, call);
      attachable(serviceId, call);
      const attachment: AttachmentSpec = { id: deps.newId(), serviceId, databaseName };
      await change(appId, call, { action: "app.attach" }, ({ spec }) => {
        if (spec.attachments.length >= attachmentsMax)
          throw new HoldfastError("WRONG_STATE", `The app has ${attachmentsMax} attachments already.`);
        if (spec.attachments.some((each) => each.serviceId === serviceId && each.databaseName === databaseName))
          throw new HoldfastError("NAME_TAKEN", `The database ${databaseName} of the service is attached already.`);
        return { ...spec, attachments: [...spec.attachments, attachment] };
      });
      return attachmentMessage(appId, attachment, isRunning);
    },

    deleteAttachment: async ({ appId, attachmentId }, call) => {
      await change(appId, call, { action: "app.detach" }, ({ spec }) => {
        const attachments = spec.attachments.filter(({ id }) => id !== attachmentId);
        if (attachments.length === spec.attachments.length)
          throw new HoldfastError("OBJECT_NOT_FOUND", "The app has no such attachment.");
        if (deps.isInUse(appId, attachmentId))
          throw new HoldfastError(
            "ATTACHMENT_IN_USE",
            "The app's users are in this database. Disable its sign-in first.",
          );
        return { ...spec, attachments };
      });
      return {};
    },
  });
}

function requireUrl(homeUrl: string | undefined): void {
  if (homeUrl === undefined) return;
  const faults = exactUrlFaults("home_url", homeUrl);
  if (faults.length > 0) throw invalid(...faults);
}
