import { tokenKind } from "#access/credential/credential.ts";
import { organizationKind } from "#access/organization/organization.ts";
import { quotasPart } from "#access/organization/quotas.ts";
import { offersPart } from "#catalog/catalog-api.ts";
import { egressPart } from "#egress-system.ts";
import { fleetPart } from "#fleet/fleet-system.ts";
import { dnsRecordKind } from "#fleet/zone/dns-record.ts";
import type { Use } from "#kernel/assembly.ts";
import type { Kernel } from "#kernel/kernel.ts";
import { definePart } from "#kernel/part.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import type { System } from "#kernel/system.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import { operationKind } from "#operation/operation.ts";
import { operationTypes } from "#operation/operation-definition.ts";
import { operationPart } from "#operation/operation-system.ts";
import { type ResourceKind, resourceKinds } from "#resource-kind/resource-kind.ts";
import { databaseUserKind } from "#services/contents/user/database-user.ts";
import { createFilesKeyChanges } from "#services/files/files-key-changes.ts";
import { createEngineTasks } from "#services/service/engine-task.ts";
import { managedServiceKind } from "#services/service/managed-service.ts";
import { createServiceAccess, serviceAccessPart } from "#services/service/service-access.ts";
import { serviceConsumers } from "#services/service/service-consumers.ts";
import { type AppObject, appKind } from "./app/app.ts";
import { createAppAccess } from "./app/app-access.ts";
import { createAppApi } from "./app/app-api.ts";
import { attachedApps, endAttachment } from "./app/attachments.ts";
import { createDomainChecks } from "./app/domain-checks.ts";
import { createTxtLookup } from "./app/domain-record.ts";
import { appSchemaRules } from "./app-schema-rules.ts";
import { authKind, isEnabled, isIssuerHost } from "./auth/auth.ts";
import { createAuthAccess } from "./auth/auth-access.ts";
import { createAuthApi } from "./auth/auth-api.ts";
import { authEventDefinitions } from "./auth/auth-events.ts";
import { createAuthWork, grantsAccess, withAccess } from "./auth/auth-reconciler.ts";
import { authRequestKind, authTaskSources } from "./auth/auth-request.ts";
import { createAuthRequestWork } from "./auth/auth-request-reconciler.ts";
import { createAuthSecrets } from "./auth/auth-secrets.ts";
import { createErasures } from "./auth/erasures.ts";
import { userHandlers } from "./auth/user-api.ts";
import { type DomainCertificateSettings, domainCertificateSettings } from "./certificate/acme-settings.ts";
import { createDomainCertificates } from "./certificate/domain-certificates.ts";
import { createAttachedServices } from "./hosting/attached-services.ts";
import { contributeHosting } from "./hosting/contribute-hosting.ts";
import { deploymentKind } from "./hosting/deployment.ts";
import { createDeploymentApi } from "./hosting/deployment-api.ts";
import {
  createFloatingIps,
  type FloatingIpSettings,
  floatingIpKind,
  floatingIpSettings,
} from "./hosting/floating-ip.ts";
import { createHostingCommands } from "./hosting/hosting-commands.ts";
import { hostingEventDefinitions } from "./hosting/hosting-events.ts";
import { hostingOperations } from "./hosting/hosting-operations.ts";
import { createHostingWork } from "./hosting/hosting-reconciler.ts";
import { createPlatformApi, type PlatformApiSettings, platformApiSettings } from "./hosting/platform-api.ts";
import { createAppIngress } from "./ingress/app-ingress.ts";
import { contributeIngress, type IngressSettings, ingressSettings } from "./ingress/contribute-ingress.ts";
import { type AppSettings, appSettings, contributeIssuerFeed } from "./issuer-feed.ts";
import { contributeRegistry, type RegistrySettings, registrySettings } from "./registry/contribute-registry.ts";
import { createAppKind } from "./resource-kind/app-kind.ts";
import { createBundleAttachments } from "./resource-kind/bundle-attachments.ts";

/** The kind of apps in bundles, whose system opens later. */
const appKindPart = definePart<ResourceKind>("apps in bundles");

/**
 * Apps of organizations, and the sign-in of their end users. An app has attached databases, one of which stores its
 * users, and issuers (OpenID Connect providers) serve the sign-in. The API writes specs, the reconciler of `app-auth`
 * prepares database, mail and DNS, and issuers follow a feed of all apps (issuer-service.ts).
 */
export const appSystem = declareSystem({
  name: "app",
  settings: {
    ...appSettings,
    ...registrySettings,
    ...ingressSettings,
    ...platformApiSettings,
    ...floatingIpSettings,
    ...domainCertificateSettings,
  },
  declares: [operationTypes.of(...Object.values(hostingOperations))],
  scopes: { apps: { verbs: ["read", "write", "secrets", "data"], completeFrom: "developer" } },
  audited: {
    "holdfast.v1.AppService": "app",
    "holdfast.v1.AppAuthService": "app",
    "holdfast.v1.AppDeploymentService": "app",
  },
  events: { ...authEventDefinitions, ...hostingEventDefinitions },
  provides: [appKindPart],
  contribute: (kernel, useLater, settings) => [
    resourceKinds.of({ kind: appKind.name, create: useLater(appKindPart) }),
    serviceConsumers.of(attachedApps(kernel.collections.open(appKind))),
    ...contributeHosting(kernel, useLater, settings),
    ...contributeIssuerFeed(kernel, useLater, settings),
    ...contributeRegistry(kernel, useLater, settings),
    ...contributeIngress(kernel, useLater, settings),
  ],
  open: openAppSystem,
});

type Settings = AppSettings &
  RegistrySettings &
  IngressSettings &
  PlatformApiSettings &
  FloatingIpSettings &
  DomainCertificateSettings;

function openAppSystem(kernel: Kernel, use: Use, settings: Settings): System {
  const { taskIds, addTaskSource } = use(operationPart);
  const { users: egress } = use(egressPart);
  const { collections, sealer, authority } = kernel;
  const fleetSystem = use(fleetPart);
  const { zone, fleet, domain } = fleetSystem;
  const { issuerAddresses, issuerPort, issuersFrom, domainResolvers } = settings;
  const apps = collections.open(appKind);
  const auths = collections.open(authKind);
  const requests = collections.open(authRequestKind);
  const services = collections.open(managedServiceKind);
  const organizations = collections.open(organizationKind);
  const secrets = createAuthSecrets(sealer);
  const appAccess = createAppAccess(apps);
  const access = createAuthAccess(appAccess, auths);
  const tasks = createEngineTasks({ ...kernel, fleet, services });
  for (const source of authTaskSources(requests)) addTaskSource(source);
  const erasures = createErasures(kernel.history.sql);
  kernel.history.addTableMaintenance((now) => erasures.prune([...organizations.ids()], now));
  const all = {
    ...kernel,
    erasures,
    domain,
    auths,
    apps,
    services,
    requests,
    organizations,
    secrets,
    tasks,
    zone,
    issuerPort,
  };

  const ingresses = { addresses: settings.ingressAddresses, port: settings.ingressPort };
  const users = collections.open(databaseUserKind);
  const attached = createAttachedServices({
    apps,
    machines: fleetSystem.machines,
    domain,
    services,
    users,
    zone,
    records: collections.open(dnsRecordKind),
    fleet,
    sealer,
  });
  const ingress = createAppIngress(ingresses, domain, {
    trust: () => authority.trustBundle,
    awaitNames: fleetSystem.awaitNames,
  });
  const isIssuer = (appId: string, domainName: string) => isIssuerHost(auths.get(appId)?.object, domainName);
  const domainCertificates = createDomainCertificates(
    { ...kernel, apps, isIssuer, hostOf: ingress.hostOf, ingressAddresses: settings.ingressAddresses },
    settings,
  );
  const hosting = {
    ...all,
    ...domainCertificates,
    attached,
    platformApi: createPlatformApi({ ...kernel, ...settings, domain, tokens: collections.open(tokenKind) }),
    floatingIps: createFloatingIps({ ...kernel, ...settings, claims: collections.open(floatingIpKind) }),
    ingress,
    hosts: fleetSystem.hosts,
    machines: fleetSystem.machines,
    fleet,
    deployments: collections.open(deploymentKind),
    operations: collections.open(operationKind),
    catalog: use(offersPart).catalog,
    registry: { address: settings.registryAddress, authorities: () => authority.trustBundle },
  };

  const hostingCommands = createHostingCommands(hosting);
  const keys = createFilesKeyChanges({ ...kernel, users });
  async function removeRest(unit: Changes, app: AppObject, signal: AbortSignal): Promise<void> {
    for (const attachment of app.spec.attachments)
      await endAttachment(unit, attachment, { services, users, keys, clock: kernel.clock });
    await removeSignIn(unit, app.metadata.id, signal);
  }

  async function removeSignIn(unit: Changes, appId: string, signal: AbortSignal): Promise<void> {
    const auth = await auths.getCurrent(appId, signal);
    if (auth === undefined) return;
    unit.remove(authKind, auth);
    zone.remove(unit, { kind: authKind.name, id: appId });
    const service = await services.getCurrent(auth.object.spec.serviceId, signal);
    if (service !== undefined && grantsAccess(service.object, auth.object, issuersFrom))
      unit.update(managedServiceKind, service, withAccess(service.object, auth.object, undefined));
  }

  const isInUse = (appId: string, attachmentId: string) => {
    const auth = auths.get(appId)?.object;
    return auth !== undefined && isEnabled(auth) && auth.spec.attachmentId === attachmentId;
  };
  const lookUpTxt = createTxtLookup(domainResolvers);
  const isPaused = () => kernel.automationPauses.list("deletion").length > 0;
  const isRunning = (id: string) =>
    services.get(id)?.object.status.state === "Running" || apps.get(id)?.object.status.hosting?.state === "Running";
  const appResources = createAppKind({
    ...hosting,
    hosting: hostingCommands,
    attach: createBundleAttachments({ ...all, keys }),
    endAttachment: (unit, attachment) =>
      endAttachment(unit, attachment, { services, users, keys, clock: kernel.clock }),
    quotas: use(quotasPart),
    registryAddress: settings.registryAddress,
    privateAddressOf: attached.privateAddressOf,
    isIssuer,
  });
  return {
    name: "app",
    provides: [appKindPart.of(appResources)],
    schemaRules: appSchemaRules,
    rpcs: [
      createAppApi({
        ...all,
        ...domainCertificates,
        quotas: use(quotasPart),
        hosting: hostingCommands,
        attached,
        isRunning,
        access: appAccess,
        serviceAccess: use(serviceAccessPart),
        filesAccess: createServiceAccess({ services, operations: collections.open(operationKind), family: "files" }),
        users,
        keys,
        isInUse,
        isIssuer,
        lookUpTxt,
        removeRest,
      }),
      createDeploymentApi({
        ...hosting,
        auditedActs: kernel.auditedActs,
        access: appAccess,
        hosting: hostingCommands,
        isRunning,
      }),
      createAuthApi({
        ...all,
        apps: appAccess,
        access,
        users: userHandlers({ ...all, access, taskIds }),
        egress,
      }),
    ],
    work: [
      createAuthWork({
        ...all,
        egress,
        issuers: { addresses: issuerAddresses, port: issuerPort },
        issuersFrom,
        trust: () => authority.trustBundle,
      }),
      createAuthRequestWork(all),
      createHostingWork({ ...hosting, removeRest }),
      domainCertificates.work,
      createDomainChecks({ ...all, lookUpTxt, isIssuer, isPaused }),
    ],
  };
}
