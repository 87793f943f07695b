import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { type CreateAppRequest, HostedAppAuth, type UpdateAppRequest } from "@holdfast/proto/holdfast/v1/app_pb.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import type { HostObject } from "#fleet/host/host.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { nextMetadata, type Stored } from "#kernel/store/resource.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import { canceled, findOperation, isFinished, type OperationObject, operationKind } from "#operation/operation.ts";
import { newOperation, type OperationDefinition } from "#operation/operation-definition.ts";
import { serviceOperations } from "#services/service/service-operations.ts";
import { type AppObject, appKind } from "../app/app.ts";
import type { CertificateOfDomain } from "../app/app-message.ts";
import type { AppIngress } from "../ingress/app-ingress.ts";
import type { AttachedServices } from "./attached-services.ts";
import { appOfDeployment, type DeploymentObject, deploymentKind, type ReleaseSettings } from "./deployment.ts";
import { earlierDeployment } from "./earlier-deployment.ts";
import { type HostedApp, requireHosted } from "./hosted-app.ts";
import { type HostingChange, requireStarted, scaled, started, stopped } from "./hosting-changes.ts";
import { hostingOperations } from "./hosting-operations.ts";
import {
  changedSettings,
  deployedFields,
  newSettings,
  refuseHostedFields,
  requireHosting,
  requireNoReserved,
  sizeOf,
  variableChanges,
} from "./hosting-request.ts";
import type { RegistryEndpoint } from "./image-digest.ts";
import { withLoginForm } from "./login-form.ts";
import { newHosting, withDeployment } from "./new-deployment.ts";

/** An app after a change, with the deployment and the operation of it, which collections do not have yet. */
interface Deployed {
  readonly app: AppObject;
  readonly deployment: (id: string) => DeploymentObject | undefined;
  readonly operation: (id: string) => OperationObject | undefined;
}

/** The changes of hosted apps by calls, for the RPCs of apps. */
export interface HostingCommands {
  readonly visibleIn: readonly Pick<Collection<unknown>, "untilRevision">[];
  readonly deployment: (id: string) => DeploymentObject | undefined;
  readonly operation: (id: string) => OperationObject | undefined;
  /** Port of the program that an app should run; undefined for an app that memory does not have yet. */
  readonly portOf: (app: HostedApp) => number | undefined;
  /** URL of an app for clients. */
  readonly urlOf: (app: AppObject) => string;
  readonly certificateOf: CertificateOfDomain;
  /**
   * Checks a request for a new app. Returns the function that adds its hosting to the unit of work, or undefined for an
   * app that runs outside of the platform. Throws INVALID_REQUEST and HOSTING_UNAVAILABLE.
   */
  added(request: CreateAppRequest): ((unit: Changes, app: AppObject) => Deployed) | undefined;
  /** Adds a deployment to the unit of work. Throws APP_NOT_HOSTED, OPERATION_IN_PROGRESS and INVALID_REQUEST. */
  deployed(unit: Changes, app: AppObject, request: UpdateAppRequest, signal: AbortSignal): Promise<Deployed>;
  /**
   * Adds a deployment that repeats the current one, with the variables of changed attachments. Throws APP_NOT_HOSTED
   * and OPERATION_IN_PROGRESS.
   */
  redeployed(unit: Changes, app: AppObject, signal: AbortSignal): Promise<Deployed>;
  /**
   * Adds a deployment that repeats an earlier one: the given one, or the one before the one that serves. Throws
   * APP_NOT_HOSTED, OPERATION_IN_PROGRESS, and OBJECT_NOT_FOUND and WRONG_STATE without such a deployment.
   */
  rolledBack(unit: Changes, app: AppObject, deploymentId: string | undefined, signal: AbortSignal): Promise<Deployed>;
  /** Adds a deployment that repeats the current one. Throws APP_NOT_HOSTED, OPERATION_IN_PROGRESS and WRONG_STATE. */
  restarted(unit: Changes, app: AppObject, signal: AbortSignal): Promise<Deployed>;
  /** Stops or starts an app. Throws APP_NOT_HOSTED, OPERATION_IN_PROGRESS and WRONG_STATE. */
  powered(unit: Changes, app: AppObject, power: "on" | "off", signal: AbortSignal): Promise<Deployed>;
  /** Changes the number of machines. Throws APP_NOT_HOSTED, OPERATION_IN_PROGRESS, WRONG_STATE and NOT_POSSIBLE. */
  scaled(unit: Changes, app: AppObject, replicas: number, signal: AbortSignal): Promise<Deployed>;
  /** Requests the deletion of an app in the unit of work, and cancels its operation in progress. */
  deleted(unit: Changes, app: Stored<HostedApp>, signal: AbortSignal): Promise<RequestedDeletion>;
}

interface RequestedDeletion {
  /** True if an earlier call has requested it: the unit of work is empty. */
  readonly isRequested: boolean;
  readonly operation: OperationObject;
}

export interface HostingCommandsDeps {
  readonly deployments: Collection<DeploymentObject>;
  readonly operations: Collection<OperationObject>;
  readonly hosts: Pick<Collection<HostObject>, "values">;
  readonly catalog: CatalogData;
  readonly registry: RegistryEndpoint;
  readonly attached: Pick<AttachedServices, "prefixesOf">;
  readonly ingress: Pick<AppIngress, "urlOf">;
  readonly certificateOf: CertificateOfDomain;
  readonly sealer: Sealer;
  readonly newId: () => string;
  readonly clock: Clock;
}

export function createHostingCommands(deps: HostingCommandsDeps): HostingCommands {
  const { deployments, operations, hosts, catalog, registry, sealer, newId, clock } = deps;
  const contextOf = (app: AppObject) => ({
    appId: app.metadata.id,
    organizationId: app.metadata.organizationId,
    registry: registry.address,
    sealer,
    prefixes: deps.attached.prefixesOf(app),
  });

  function add(
    unit: Changes,
    { app, deployment, operation }: { app: AppObject; deployment: DeploymentObject; operation: OperationObject },
  ): Deployed {
    unit.create(deploymentKind, deployment);
    unit.create(operationKind, operation);
    const deploymentOf = (id: string) => (id === deployment.metadata.id ? deployment : deployments.get(id)?.object);
    return { app, deployment: deploymentOf, operation: () => operation };
  }

  /** Throws APP_NOT_HOSTED, OPERATION_IN_PROGRESS, and WRONG_STATE for an app that is being deleted. */
  async function requireIdle(app: AppObject, signal: AbortSignal): Promise<HostedApp> {
    const hosted = requireHosted(app);
    if (app.metadata.deletionRequestedAt !== undefined)
      throw new HoldfastError("WRONG_STATE", "The app is being deleted.");
    const inProgress = (await findOperation(operations, hosted.status.hosting.operationId, signal))?.object;
    if (inProgress !== undefined && !isFinished(inProgress))
      throw new HoldfastError(
        "OPERATION_IN_PROGRESS",
        `Operation ${inProgress.metadata.id} (${inProgress.spec.type}) is in progress.`,
      );
    return hosted;
  }

  async function desiredOf({ metadata, spec }: HostedApp, signal: AbortSignal): Promise<DeploymentObject> {
    const { deploymentId } = spec.hosting;
    const found = deployments.get(deploymentId) ?? (await deployments.getCurrent(deploymentId, signal));
    if (found === undefined) throw new Error(`app ${metadata.id} has no deployment ${deploymentId}`);
    return found.object;
  }

  function deploy(
    unit: Changes,
    app: HostedApp,
    settings: ReleaseSettings,
    digest: string | null,
    type: OperationDefinition = hostingOperations.deploy,
  ): Deployed {
    requireStarted(app);
    const ids = { deploymentId: newId(), operationId: newId() };
    return add(unit, withDeployment(app, { ...ids, type, settings, digest, now: clock.now() }));
  }

  function change(unit: Changes, { app, operation }: HostingChange): Deployed {
    unit.create(operationKind, operation);
    return { app, deployment: (id) => deployments.get(id)?.object, operation: () => operation };
  }

  return {
    visibleIn: [deployments, operations],
    deployment: (id) => deployments.get(id)?.object,
    operation: (id) => operations.get(id)?.object,
    portOf: ({ spec }) => deployments.get(spec.hosting.deploymentId)?.object.spec.settings.port,
    urlOf: deps.ingress.urlOf,
    certificateOf: deps.certificateOf,

    added(request) {
      const { imageRef } = request;
      if (imageRef === undefined) {
        refuseHostedFields(request);
        return undefined;
      }
      requireHosting(registry.address, hosts.values());
      const size = sizeOf(request, catalog);
      return (unit, app) => {
        const settings = newSettings(request, imageRef, contextOf(app));
        const ids = { deploymentId: newId(), operationId: newId() };
        const type = serviceOperations.create;
        const first = newHosting(app, size, { ...ids, type, settings, digest: null, now: clock.now() });
        const { auth = HostedAppAuth.NONE } = request;
        return add(unit, { ...first, app: withLoginForm(first.app, auth, sealer) });
      };
    },

    async deployed(unit, app, request, signal) {
      const hosted = await requireIdle(app, signal);
      const before = await desiredOf(hosted, signal);
      const fields = (request.updateMask?.paths ?? []).filter((path) =>
        [...deployedFields, ...variableChanges].some((field) => field === path),
      );
      const settings = changedSettings(before.spec.settings, request, fields, contextOf(app));
      return deploy(unit, hosted, settings, null);
    },

    async redeployed(unit, app, signal) {
      const hosted = await requireIdle(app, signal);
      const { spec, status } = await desiredOf(hosted, signal);
      const { environment, secretNames } = spec.settings;
      const names = { env: Object.keys(environment), secret_env: secretNames };
      requireNoReserved(names, deps.attached.prefixesOf(app));
      return deploy(unit, hosted, spec.settings, status.digest);
    },

    async rolledBack(unit, app, deploymentId, signal) {
      const hosted = await requireIdle(app, signal);
      const { servingId } = hosted.status.hosting;
      const all = deployments.by(appOfDeployment, app.metadata.id).map(({ object }) => object);
      const earlier = earlierDeployment(all, servingId, deploymentId);
      return deploy(unit, hosted, earlier.spec.settings, earlier.status.digest);
    },

    async restarted(unit, app, signal) {
      const hosted = await requireIdle(app, signal);
      const { spec, status } = await desiredOf(hosted, signal);
      return deploy(unit, hosted, spec.settings, status.digest, serviceOperations.restart);
    },

    async powered(unit, app, power, signal) {
      const hosted = await requireIdle(app, signal);
      const asOf = { operationId: newId(), now: clock.now() };
      return change(unit, power === "off" ? stopped(hosted, asOf) : started(hosted, asOf));
    },

    async scaled(unit, app, replicas, signal) {
      const hosted = await requireIdle(app, signal);
      return change(unit, scaled(hosted, replicas, { operationId: newId(), now: clock.now() }));
    },

    async deleted(unit, app, signal) {
      const { metadata, status } = app.object;
      const { id, organizationId } = metadata;
      const current = await findOperation(operations, status.hosting.operationId, signal);
      if (metadata.deletionRequestedAt !== undefined && current !== undefined)
        return { isRequested: true, operation: current.object };
      const now = clock.now();
      if (current !== undefined && !isFinished(current.object))
        unit.update(operationKind, current, canceled(current.object, now));
      const subject = { kind: appKind.name, id };
      const operation = newOperation({ id: newId(), subject, organizationId, type: serviceOperations.delete, now });
      unit.create(operationKind, operation);
      unit.update(appKind, app, {
        ...app.object,
        metadata: { ...nextMetadata(metadata, now), deletionRequestedAt: metadata.deletionRequestedAt ?? now },
        status: { hosting: { ...status.hosting, operationId: operation.metadata.id } },
      });
      return { isRequested: false, operation };
    },
  };
}
