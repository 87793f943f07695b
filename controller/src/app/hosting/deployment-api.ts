import { create } from "@bufbuild/protobuf";
import type { Call } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { type ServedService, serve } from "@holdfast/common/call.ts";
import {
  AppCredentialsSchema,
  AppDeploymentService,
  AppDeploymentsSchema,
  AppNodesSchema,
  AppRegistrySchema,
} from "@holdfast/proto/holdfast/v1/app_deployment_pb.ts";
import type { App } from "@holdfast/proto/holdfast/v1/app_pb.ts";
import { auditOf, organizationOf } from "#access/caller.ts";
import { refuseIfManaged } from "#access/managed-by-parent.ts";
import { mutate } from "#access/mutate.ts";
import type { FleetSystem } from "#fleet/fleet-system.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Changes, UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { AppAccess } from "../app/app-access.ts";
import { type AppObject, appKind } from "../app/app.ts";
import { appMessage, type IsRunning } from "../app/app-message.ts";
import { createAppNodes } from "./app-nodes.ts";
import { appOfDeployment, type DeploymentObject } from "./deployment.ts";
import { deploymentMessage, nodeMessage } from "./deployment-message.ts";
import type { FloatingIps } from "./floating-ip.ts";
import { type HostedApp, requireHosted } from "./hosted-app.ts";
import type { HostingCommands } from "./hosting-commands.ts";
import { loginPasswordOf, loginUsername } from "./login-form.ts";
import type { RegistryEndpoint } from "./image-digest.ts";

export interface DeploymentApiDeps extends Pick<FleetSystem, "machines" | "hosts"> {
  readonly access: AppAccess;
  readonly apps: Collection<AppObject>;
  readonly deployments: Collection<DeploymentObject>;
  readonly fleet: Pick<FleetSystem["fleet"], "session" | "observation">;
  readonly floatingIps: FloatingIps;
  readonly hosting: HostingCommands;
  readonly registry: Pick<RegistryEndpoint, "address">;
  readonly isRunning: IsRunning;
  readonly sealer: Pick<Sealer, "open">;
  readonly auditedActs: Pick<Kernel["auditedActs"], "read">;
  readonly begin: () => UnitOfWork;
}

/** The RPCs of hosted apps' deployments and machines. */
export function createDeploymentApi(deps: DeploymentApiDeps): ServedService {
  const { access, apps, deployments, machines, fleet, floatingIps, hosting, isRunning } = deps;
  const { observe } = createAppNodes(deps);
  /** Undefined for an app that runs outside of the platform: it has no deployments and no machines. */
  const statusOf = (appId: string, call: Call) => access.require(appId, call).object.status.hosting;

  function change(
    appId: string,
    call: Call,
    action: string,
    edit: (unit: Changes, app: AppObject) => ReturnType<HostingCommands["rolledBack"]>,
  ): Promise<App> {
    const visibleIn = [apps, ...hosting.visibleIn];
    return mutate(deps, call, { action, kind: appKind.name, visibleIn }, async (unit) => {
      const before = await access.getCurrent(appId, call);
      const { app, ...created } = await edit(unit, before.object);
      unit.update(appKind, before, app);
      return { id: appId, response: appMessage(app, { isRunning, ...hosting, ...created }) };
    });
  }

  function changeAddress(
    appId: string,
    call: Call,
    action: string,
    edit: (unit: Changes, app: HostedApp) => Promise<HostedApp>,
  ): Promise<App> {
    const visibleIn = [apps, ...floatingIps.visibleIn];
    return mutate(deps, call, { action, kind: appKind.name, visibleIn }, async (unit) => {
      const before = await access.getCurrent(appId, call);
      const app = requireHosted(before.object);
      if (app.metadata.deletionRequestedAt !== undefined)
        throw new HoldfastError("WRONG_STATE", "The app is being deleted.");
      const after = await edit(unit, app);
      const response = appMessage(after, { isRunning, ...hosting });
      if (after === app) return { unchanged: response };
      unit.update(appKind, before, after);
      return { id: appId, response };
    });
  }

  return serve(AppDeploymentService, {
    listAppDeployments: async ({ appId }, call) => {
      const servingId = statusOf(appId, call)?.servingId ?? null;
      const found = deployments.by(appOfDeployment, appId).map(({ object }) => object);
      const newestFirst = found.toSorted((a, b) => b.spec.number - a.spec.number);
      return create(AppDeploymentsSchema, {
        deployments: newestFirst.map((each) => deploymentMessage(each, servingId)),
      });
    },

    rollBackApp: ({ appId, deploymentId }, call) =>
      change(appId, call, "app.rollback", (unit, app) => hosting.rolledBack(unit, app, deploymentId, call.signal)),

    stopApp: ({ appId }, call) =>
      change(appId, call, "app.stop", (unit, app) => {
        refuseIfManaged(app, "stop");
        return hosting.powered(unit, app, "off", call.signal);
      }),
    startApp: ({ appId }, call) =>
      change(appId, call, "app.start", (unit, app) => hosting.powered(unit, app, "on", call.signal)),
    restartApp: ({ appId }, call) =>
      change(appId, call, "app.restart", (unit, app) => hosting.restarted(unit, app, call.signal)),

    assignFloatingIp: ({ appId }, call) =>
      changeAddress(appId, call, "app.floating_ip.assign", (unit, app) => floatingIps.assign(unit, app, call.signal)),
    releaseFloatingIp: async ({ appId }, call) => {
      await changeAddress(appId, call, "app.floating_ip.release", (unit, app) =>
        floatingIps.release(unit, app, call.signal),
      );
      return {};
    },

    getAppCredentials: async ({ appId }, call) => {
      const app = requireHosted(access.require(appId, call).object);
      const password = loginPasswordOf(app, deps.sealer);
      if (password === undefined)
        throw new HoldfastError("WRONG_STATE", "The app has no login form. Set its auth to login_form first.");
      return deps.auditedActs.read(auditOf(call, "app.reveal-credentials", appKind.name, appId), () =>
        create(AppCredentialsSchema, { username: loginUsername, password }),
      );
    },

    getAppRegistry: async (_, call) => {
      const { address } = deps.registry;
      if (address === "") throw new HoldfastError("HOSTING_UNAVAILABLE", "The installation has no registry of images.");
      return create(AppRegistrySchema, { host: address, repository: organizationOf(call) });
    },

    listAppNodes: async ({ appId }, call) => {
      const { spec, status } = access.require(appId, call).object;
      const floatingIp = spec.hosting?.floatingIp;
      const nodes = (status.hosting?.nodeIds ?? []).map((id) =>
        nodeMessage(observe(id), machines.get(id)?.object, {
          agentVersion: fleet.session(id)?.agentVersion,
          floatingIp,
        }),
      );
      return create(AppNodesSchema, { nodes });
    },
  });
}
