import { isDeepStrictEqual } from "node:util";
import { create } from "@bufbuild/protobuf";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { CreateAppRequestSchema, HostedAppAuth, UpdateAppRequestSchema } from "@holdfast/proto/holdfast/v1/app_pb.ts";
import type { Quotas } from "#access/organization/quotas.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import { priceOfService } from "#catalog/price.ts";
import type { HostObject } from "#fleet/host/host.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { type Collection, ofOrganization } from "#kernel/store/collection.ts";
import { newMetadata, nextMetadata, type Stored } from "#kernel/store/resource.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import {
  absent,
  type AttachedResource,
  type ResourceKind,
  type ResourceSpec,
  specChanges,
} from "#resource-kind/resource-kind.ts";
import { type AppObject, type AttachmentSpec, appKind } from "../app/app.ts";
import { foreignConsumer } from "../app/app-attachments.ts";
import { openVariables } from "../hosting/app-workload.ts";
import type { DeploymentObject } from "../hosting/deployment.ts";
import { type HostedApp, isHosted } from "../hosting/hosted-app.ts";
import type { HostingCommands } from "../hosting/hosting-commands.ts";
import { newestFailed } from "../hosting/hosting-message.ts";
import { chosenSize, requireHosting, sizeOf } from "../hosting/hosting-request.ts";
import { parseImageReference } from "../hosting/image-reference.ts";
import { withLoginForm } from "../hosting/login-form.ts";
import { observationOf } from "./app-observation.ts";
import {
  type AppResourceSpec,
  appSchema,
  attachmentFaults,
  attachmentsOf,
  deployedMembers,
  loginForm,
  missingImage,
  normalizedApp,
  portFaults,
  variableFaults,
} from "./app-resource-spec.ts";
import { bundleDomainOf, domainFaults, withBundleDomain } from "./bundle-domain.ts";
import { quotaOf, requestOf, settingsOf, sizeRequest } from "./app-resource-request.ts";
import type { AttachResource } from "./bundle-attachments.ts";

export interface AppKindDeps {
  readonly apps: Collection<AppObject>;
  readonly deployments: Pick<Collection<DeploymentObject>, "get" | "getCurrent">;
  readonly hosts: Pick<Collection<HostObject>, "values">;
  readonly hosting: HostingCommands;
  readonly attach: AttachResource;
  /** Ends what an attachment has, in the unit of work that removes it. */
  readonly endAttachment: (unit: Changes, attachment: AttachmentSpec) => Promise<void>;
  readonly quotas: Pick<Quotas, "claim">;
  readonly catalog: CatalogData;
  /** host:port of the platform's registry. */
  readonly registryAddress: string;
  /** Host and port at which apps of the same bundle reach the app. */
  readonly privateAddressOf: (app: AppObject) => { readonly host: string; readonly port: number };
  /** The platform's domain; apps cannot have it or a name below it. */
  readonly domain: string;
  /** True if the domain is the host of the app's issuer, which keeps it. */
  readonly isIssuer: (appId: string, domain: string) => boolean;
  readonly newId: () => string;
  readonly sealer: Sealer;
  readonly clock: Clock;
}

/** Fields of a deployment that a descriptor has; the others remain as they are. */
const describedFields = ["image_ref", "port", "command", "env", "secret_env", "health_check_path"] as const;
const secretPaths = /^(env|secret_env)\./;

/**
 * The resource kind `app`: hosted apps as resources of projects, stacks and pipelines. An app is created with its
 * attachments, so that its first release has their variables. A change of what a release has is a deployment.
 */
export function createAppKind(deps: AppKindDeps): ResourceKind {
  const { apps, deployments, hosting, catalog, sealer, clock } = deps;
  const find = async (id: string, signal: AbortSignal): Promise<Stored<HostedApp> | undefined> =>
    hostedOf(apps.get(id) ?? (await apps.getCurrent(id, signal)));
  const current = async (id: string, signal: AbortSignal) => hostedOf(await apps.getCurrent(id, signal));

  async function attachAll(
    unit: Changes,
    app: Pick<AppObject, "metadata">,
    attached: readonly AttachedResource[],
    signal: AbortSignal,
  ): Promise<AttachmentSpec[]> {
    const made: AttachmentSpec[] = [];
    for (const resource of attached) made.push(await deps.attach(unit, app, resource, signal));
    return made;
  }

  /** The spec of an app as a descriptor has it, with the settings of one of its deployments. */
  async function specWith(app: HostedApp, deploymentId: string, signal: AbortSignal): Promise<ResourceSpec> {
    const { metadata, spec } = app;
    const domain = bundleDomainOf(app);
    const deployment = deployments.get(deploymentId) ?? (await deployments.getCurrent(deploymentId, signal));
    if (deployment === undefined) return {};
    const { settings } = deployment.object.spec;
    const { planName, storageSizeGb, storageTier, zone, replicas } = spec.hosting;
    return {
      image: settings.imageRef,
      port: settings.port,
      env: settings.environment,
      secret_env: openVariables(metadata.id, settings.sealedEnvironment, sealer),
      command: settings.command,
      ...(settings.healthCheckPath !== "" && { health_check_path: settings.healthCheckPath }),
      plan_name: planName,
      storage_size_gb: storageSizeGb,
      storage_tier: storageTier,
      zone,
      replicas,
      ...(spec.hosting.loginForm && { auth: loginForm }),
      ...(domain !== undefined && { domain }),
    };
  }

  /** The newest deployment if it has failed. Memory may be behind the app. */
  async function failedOf(app: HostedApp, signal: AbortSignal): Promise<DeploymentObject | undefined> {
    const { failedId } = app.status.hosting;
    if (failedId === null) return undefined;
    const known = deployments.get(failedId);
    const found = known?.object.status.state === "failed" ? known : await deployments.getCurrent(failedId, signal);
    return newestFailed(app, () => found?.object);
  }

  return {
    kind: appKind.name,
    aliases: {},
    scopes: ["apps:write"],
    schema: appSchema,
    normalize: normalizedApp,
    faults: (spec) => [
      ...missingImage(spec),
      ...attachmentFaults(spec),
      ...portFaults(spec),
      ...variableFaults(spec),
      ...domainFaults(spec, deps.domain),
      ...chosenSize(sizeRequest(spec as AppResourceSpec), catalog).faults.map(({ field, ...fault }) => ({
        ...fault,
        field,
        pointer: `/${field}`,
      })),
    ],

    unavailable(spec) {
      const { image } = spec as AppResourceSpec;
      const parsed = parseImageReference(image, { organizationId: "", registry: deps.registryAddress });
      if (typeof parsed === "string" && parsed.includes("registry")) return `image ${parsed}.`;
      try {
        requireHosting(deps.registryAddress, deps.hosts.values());
        return undefined;
      } catch (error) {
        if (error instanceof HoldfastError) return error.detail;
        throw error;
      }
    },

    monthlyCost(spec) {
      const { planName, storageSizeGb, storageTier, replicas } = sizeOf(sizeRequest(spec as AppResourceSpec), catalog);
      const { planCents, storageCents } = priceOfService(catalog, { planName, storageSizeGb, storageTier }, replicas);
      const machines = replicas === 1 ? "" : `${replicas} x `;
      return [
        { description: `${machines}plan ${planName}`, cents: planCents, isCeiling: false },
        {
          description: `${machines}${storageSizeGb} GB of ${storageTier} storage`,
          cents: storageCents,
          isCeiling: false,
        },
      ];
    },
    quotaOf,
    portOf: ({ port }) => port as number | undefined,

    nameHolder(organizationId, name) {
      const found = ofOrganization(apps, organizationId).find(({ metadata }) => metadata.name === name);
      if (found === undefined) return undefined;
      const { id, managedBy } = found.metadata;
      return { id, text: `app ${id}${managedBy === undefined ? "" : ` of ${managedBy.kind} ${managedBy.id}`}` };
    },

    diff(before, after) {
      const changes = specChanges(before, after).map((change) => ({
        ...change,
        ...(secretPaths.test(change.path) && { isSecret: true as const }),
      }));
      if (changes.length === 0) return { change: "unchanged" };
      const isDeployment = changes.every(({ path }) => deployedMembers.some((each) => each === path.split(".", 1)[0]));
      return isDeployment ? { change: "inPlace", action: "redeploy_app", changes } : { change: "recorded", changes };
    },

    async create(unit, { id, name, organizationId, spec, owner, attached = [] }, signal) {
      const request = create(CreateAppRequestSchema, { name, ...requestOf(spec as AppResourceSpec) });
      const added = hosting.added(request);
      if (added === undefined) throw new Error("an app of a bundle has an image");
      const metadata = { ...newMetadata(id, clock.now(), { name, organizationId }), managedBy: owner };
      const attachments = await attachAll(unit, { metadata }, attached, signal);
      const { app } = added(unit, { metadata, spec: { homeUrl: null, attachments, domains: [] }, status: {} });
      unit.create(appKind, withBundleDomain(app, (spec as AppResourceSpec).domain, deps));
      unit.claimName(appKind, organizationId, name, id);
      await deps.quotas.claim(unit, organizationId, quotaOf(spec));
      return { release() {} };
    },

    async act(unit, id, _action, target, signal) {
      const app = await current(id, signal);
      if (app === undefined) throw new HoldfastError("APP_NOT_FOUND", "The app was deleted.");
      const before = await specWith(app.object, app.object.spec.hosting.deploymentId, signal);
      const { auth = HostedAppAuth.NONE } = requestOf(target as AppResourceSpec);
      const gated = withLoginForm(app.object, auth, sealer);
      const desired = withBundleDomain(gated, (target as AppResourceSpec).domain, deps);
      if (isDeepStrictEqual(settingsOf(before), settingsOf(target))) {
        const metadata = nextMetadata(app.object.metadata, clock.now());
        // Otherwise the action was performed before a crash; or only attachments change, which are attached later.
        const isChanged = !isDeepStrictEqual([before["auth"], before["domain"]], [target["auth"], target["domain"]]);
        if (isChanged) unit.update(appKind, app, { ...desired, metadata });
        return;
      }
      const { name: _name, ...fields } = create(CreateAppRequestSchema, requestOf(target as AppResourceSpec));
      const request = create(UpdateAppRequestSchema, {
        appId: id,
        updateMask: { paths: [...describedFields] },
        imageRef: fields.imageRef ?? "",
        env: fields.env,
        secretEnv: fields.secretEnv,
        command: fields.command,
        ...(fields.port !== undefined && { port: fields.port }),
        ...(fields.healthCheckPath !== undefined && { healthCheckPath: fields.healthCheckPath }),
      });
      const { app: after } = await hosting.deployed(unit, desired, request, signal);
      unit.update(appKind, app, after);
    },

    async mark(unit, id, owner, signal) {
      const app = await find(id, signal);
      if (app === undefined) return;
      const { managedBy: _, ...rest } = app.object.metadata;
      const metadata = owner === undefined ? rest : { ...rest, managedBy: owner };
      unit.update(appKind, app, { ...app.object, metadata });
    },

    protectedBy(id) {
      const app = apps.get(id)?.object;
      const detail = app && foreignConsumer(apps, app);
      return detail === undefined ? undefined : { error: "ATTACHMENT_IN_USE", detail };
    },

    async remove(unit, id, _options, signal) {
      const app = await find(id, signal);
      if (app === undefined || app.object.metadata.deletionRequestedAt !== undefined) return false;
      await hosting.deleted(unit, app, signal);
      return true;
    },

    async observe(id, signal, { isCurrent } = { isCurrent: false }) {
      const app = (await (isCurrent ? current(id, signal) : find(id, signal)))?.object;
      if (app === undefined) return absent;
      const { servingId } = app.status.hosting;
      const actual = await specWith(app, servingId ?? app.spec.hosting.deploymentId, signal);
      return observationOf(app, hosting, actual, await failedOf(app, signal));
    },
    version: (id) => String(apps.get(id)?.modRevision ?? 0),
    subscribe: (onChange) => apps.subscribe((id) => onChange(id)),

    async outputs(id, signal) {
      const app = (await find(id, signal))?.object;
      return app && { type: "app", ...deps.privateAddressOf(app) };
    },

    consumer: {
      attachmentsOf,
      variablesOf: (spec) => {
        const { env, secret_env: secretEnv } = spec as AppResourceSpec;
        return [...Object.keys(env), ...Object.keys(secretEnv)];
      },
      async attach(unit, id, attached, signal) {
        const app = await current(id, signal);
        if (app === undefined) return;
        const { attachments } = app.object.spec;
        const isOf = (resource: AttachedResource) => (attachment: AttachmentSpec) =>
          attachment.serviceId === resource.id && attachment.prefix === resource.prefix;
        const remaining = attachments.filter((each) => attached.some((resource) => isOf(resource)(each)));
        const missing = attached.filter((resource) => !attachments.some(isOf(resource)));
        if (missing.length === 0 && remaining.length === attachments.length) return;
        const removed = attachments.filter((each) => !remaining.includes(each));
        for (const attachment of removed) await deps.endAttachment(unit, attachment);
        const made = await attachAll(unit, app.object, missing, signal);
        const changed = { ...app.object, spec: { ...app.object.spec, attachments: [...remaining, ...made] } };
        const { app: after } = await hosting.redeployed(unit, changed, signal);
        unit.update(appKind, app, after);
      },
    },
  };
}

function hostedOf(app: Stored<AppObject> | undefined): Stored<HostedApp> | undefined {
  return app !== undefined && isHosted(app.object) ? { ...app, object: app.object } : undefined;
}
