import { type ServedService, serve } from "@holdfast/common/call.ts";
import { invalid } from "@holdfast/common/errors.ts";
import { AppService } from "@holdfast/proto/holdfast/v1/app_pb.ts";
import { mayTouch, organizationOf, requireUnlimited } from "#access/caller.ts";
import { mutate } from "#access/mutate.ts";
import type { Organization } from "#access/organization/organization.ts";
import type { Quotas } from "#access/organization/quotas.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { newMetadata, nextMetadata } from "#kernel/store/resource.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import { appKind, type AppObject } from "./app.ts";
import { appMessage } from "./app-message.ts";
import type { ChangeApp } from "./app-access.ts";
import { type AttachmentsDeps, createAttachments } from "./attachments.ts";
import { exactUrlFaults } from "./checked-url.ts";
import { type DomainApiDeps, domainHandlers } from "./domain-api.ts";

export interface AppApiDeps
  extends Omit<DomainApiDeps, "change" | "apps">,
    Omit<AttachmentsDeps, "isRunning" | "access"> {
  readonly apps: Collection<AppObject>;
  readonly organizations: Pick<Collection<Organization>, "untilRevision">;
  readonly quotas: Pick<Quotas, "claim">;
  /** Removes the app's sign-in in the unit of work that deletes the app. */
  readonly removeSignIn: (unit: Changes, appId: string, signal: AbortSignal) => Promise<void>;
  readonly cursors: Cursors;
}

const kind = appKind.name;

/** The RPCs of apps, and of their attachments and domains. */
export function createAppApi(deps: AppApiDeps): ServedService {
  const { apps, access, services, clock, cursors } = deps;
  const isRunning = (serviceId: string) => services.get(serviceId)?.object.status.state === "Running";

  const attachments = createAttachments({ ...deps, isRunning });

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

  return serve(AppService, {
    ...domainHandlers({ ...deps, change }),
    ...attachments.handlers,

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
      mutate(deps, call, { action: "app.delete", kind, visibleIn: [apps, deps.services, deps.users] }, async (unit) => {
        const app = await access.getCurrent(appId, call);
        const { organizationId, name } = app.object.metadata;
        await deps.removeSignIn(unit, appId, call.signal);
        for (const attachment of app.object.spec.attachments) await attachments.end(unit, attachment);
        unit.remove(appKind, app);
        unit.releaseName(appKind, organizationId, name);
        return { id: appId, result: {} };
      }),
  });
}

function requireUrl(homeUrl: string | undefined): void {
  if (homeUrl === undefined) return;
  const faults = exactUrlFaults("home_url", homeUrl);
  if (faults.length > 0) throw invalid(...faults);
}
