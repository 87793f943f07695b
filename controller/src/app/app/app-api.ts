import { create } from "@bufbuild/protobuf";
import { type Call, type ServedService, serve } from "@holdfast/common/call.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import { AppDeletionSchema, AppService } from "@holdfast/proto/holdfast/v1/app_pb.ts";
import { mayTouch, organizationOf, requireUnlimited } from "#access/caller.ts";
import { refuseIfManaged } from "#access/managed-by-parent.ts";
import { mutate } from "#access/mutate.ts";
import type { Organization } from "#access/organization/organization.ts";
import type { Quotas } from "#access/organization/quotas.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { newMetadata, nextMetadata } from "#kernel/store/resource.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import { operationMessage } from "#operation/operation-message.ts";
import { isHosted, requireHosted } from "../hosting/hosted-app.ts";
import type { HostingCommands } from "../hosting/hosting-commands.ts";
import { withLoginForm } from "../hosting/login-form.ts";
import { deployedFields, variableChanges } from "../hosting/hosting-request.ts";
import { type AppObject, appKind } from "./app.ts";
import type { ChangeApp } from "./app-access.ts";
import { requireOpenPort, requireUnattached } from "./app-attachments.ts";
import { appMessage } from "./app-message.ts";
import { type AttachmentsDeps, attachmentHandlers } from "./attachments.ts";
import { exactUrlFaults } from "./checked-url.ts";
import { type DomainApiDeps, domainHandlers } from "./domain-api.ts";

export interface AppApiDeps extends Omit<DomainApiDeps, "change" | "apps">, Omit<AttachmentsDeps, "access"> {
  readonly apps: Collection<AppObject>;
  readonly organizations: Pick<Collection<Organization>, "untilRevision">;
  readonly quotas: Pick<Quotas, "claim">;
  readonly hosting: HostingCommands;
  /** Removes the app's sign-in, and what its attachments have, in the unit of work that deletes the app. */
  readonly removeRest: (unit: Changes, app: AppObject, signal: AbortSignal) => Promise<void>;
  readonly cursors: Cursors;
}

const kind = appKind.name;

/** The RPCs of apps, and of their attachments and domains. */
export function createAppApi(deps: AppApiDeps): ServedService {
  const { apps, access, clock, cursors, hosting } = deps;
  const { isRunning } = deps;
  const message = (app: AppObject) => appMessage(app, { isRunning, ...hosting });

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

  async function scaled(unit: Changes, before: AppObject, replicas: number, call: Call) {
    const changed = await hosting.scaled(unit, before, replicas, call.signal);
    const growthGb = (storageOf(changed.app)?.storageGb ?? 0) - (storageOf(before)?.storageGb ?? 0);
    if (growthGb > 0) await deps.quotas.claim(unit, before.metadata.organizationId, { storageGb: growthGb });
    return changed;
  }

  return serve(AppService, {
    ...domainHandlers({ ...deps, change }),
    ...attachmentHandlers(deps),

    createApp: (request, call) => {
      requireUnlimited(call);
      const organizationId = organizationOf(call);
      requireUrl(request.homeUrl);
      const added = hosting.added(request);
      const visibleIn = [deps.organizations, apps, ...hosting.visibleIn];
      return mutate(deps, call, { action: "app.create", kind, visibleIn }, async (unit) => {
        const external: AppObject = {
          metadata: newMetadata(deps.newId(), clock.now(), { name: request.name, organizationId }),
          spec: { homeUrl: request.homeUrl ?? null, attachments: [], domains: [] },
          status: {},
        };
        const { app, ...created } = added?.(unit, external) ?? { app: external };
        const response = appMessage(app, { isRunning, ...hosting, ...created });
        unit.create(appKind, app);
        unit.claimName(appKind, organizationId, request.name, app.metadata.id);
        await deps.quotas.claim(unit, organizationId, { apps: 1, ...storageOf(app) });
        return { id: app.metadata.id, response };
      });
    },

    listApps: async (request, call) => {
      const page = { ...cursors.open(call, "apps", null, request), organizationId: organizationOf(call) };
      const { items, next } = apps.page(({ metadata }) => mayTouch(call, appKind.name, metadata.id), page);
      return { apps: items.map(({ object }) => message(object)), ...page.next(next) };
    },

    getApp: async ({ appId }, call) => message(access.require(appId, call).object),

    updateApp: async (request, call) => {
      const paths = request.updateMask?.paths ?? [];
      if (paths.length === 0)
        throw invalid({ field: "update_mask", code: "required", detail: "must name at least one field" });
      const unknownPath = paths.find((path) => !["home_url", "replicas", "auth"].includes(path) && !isDeployed(path));
      if (unknownPath !== undefined)
        throw invalid({ field: unknownPath, code: "unknown_field", detail: "cannot be changed" });
      const { replicas } = request;
      if (paths.includes("auth") && request.auth === undefined)
        throw invalid({ field: "auth", code: "required", detail: "must be none or login_form" });
      if (paths.includes("replicas") && replicas === undefined)
        throw invalid({ field: "replicas", code: "required", detail: "must be a number of machines" });
      if (paths.includes("replicas") && paths.some(isDeployed))
        throw invalid({
          field: "replicas",
          code: "invalid_value",
          detail: "cannot change with the deployment's fields",
        });
      requireUrl(request.homeUrl);
      const visibleIn = [apps, deps.organizations, ...hosting.visibleIn];
      return mutate(deps, call, { action: "app.update", kind, visibleIn }, async (unit) => {
        const before = await access.getCurrent(request.appId, call);
        requireRemaining(before.object);
        requireOpenPort(apps, before.object, paths.includes("port") ? request.port : undefined);
        const deployed = paths.some(isDeployed)
          ? await hosting.deployed(unit, before.object, request, call.signal)
          : replicas !== undefined && paths.includes("replicas")
            ? await scaled(unit, before.object, replicas, call)
            : { app: { ...before.object, metadata: nextMetadata(before.object.metadata, clock.now()) } };
        const { app: changed, ...created } = deployed;
        const { auth } = request;
        const app =
          auth !== undefined && paths.includes("auth")
            ? withLoginForm(requireHosted(changed), auth, deps.sealer)
            : changed;
        const homeUrl = paths.includes("home_url") ? (request.homeUrl ?? null) : app.spec.homeUrl;
        const after = { ...app, spec: { ...app.spec, homeUrl } };
        unit.update(appKind, before, after);
        return { id: request.appId, response: appMessage(after, { isRunning, ...hosting, ...created }) };
      });
    },

    deleteApp: ({ appId: id }, call) => {
      const visibleIn = [apps, deps.services, deps.users, ...hosting.visibleIn];
      return mutate(deps, call, { action: "app.delete", kind, visibleIn }, async (unit) => {
        const app = await access.getCurrent(id, call);
        const { object } = app;
        refuseIfManaged(object, "delete");
        if (isHosted(object)) {
          await requireUnattached(apps, app);
          const { isRequested, operation } = await hosting.deleted(unit, { ...app, object }, call.signal);
          const response = create(AppDeletionSchema, { id, operation: operationMessage(operation) });
          return isRequested ? { unchanged: response } : { id, response };
        }
        await deps.removeRest(unit, object, call.signal);
        unit.remove(appKind, app);
        unit.releaseName(appKind, object.metadata.organizationId, object.metadata.name);
        return { id, response: create(AppDeletionSchema, { id }) };
      });
    },
  });
}

/** True for a field whose change is a deployment. */
function isDeployed(path: string): boolean {
  return [...deployedFields, ...variableChanges].some((field) => field === path);
}

/** The storage that counts toward the organization's quota. */
function storageOf({ spec: { hosting } }: AppObject): { storageGb: number } | undefined {
  return hosting && { storageGb: hosting.storageSizeGb * hosting.replicas };
}

/** Throws WRONG_STATE for an app that is being deleted. */
function requireRemaining({ metadata }: AppObject): void {
  if (metadata.deletionRequestedAt !== undefined) throw new HoldfastError("WRONG_STATE", "The app is being deleted.");
}

function requireUrl(homeUrl: string | undefined): void {
  if (homeUrl === undefined) return;
  const faults = exactUrlFaults("home_url", homeUrl);
  if (faults.length > 0) throw invalid(...faults);
}
