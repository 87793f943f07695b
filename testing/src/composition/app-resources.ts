import type { Clock } from "@holdfast/common/clock.ts";
import type { Quotas } from "@holdfast/controller/access/organization/quotas.ts";
import type { AppObject } from "@holdfast/controller/app/app/app.ts";
import { appKind } from "@holdfast/controller/app/app/app.ts";
import { deploymentKind, finishedDeployment } from "@holdfast/controller/app/hosting/deployment.ts";
import { isHosted } from "@holdfast/controller/app/hosting/hosted-app.ts";
import { createHostingCommands } from "@holdfast/controller/app/hosting/hosting-commands.ts";
import { createAppKind } from "@holdfast/controller/app/resource-kind/app-kind.ts";
import { createBundleAttachments } from "@holdfast/controller/app/resource-kind/bundle-attachments.ts";
import { defaultCatalog } from "@holdfast/controller/catalog/catalog.ts";
import { newHost } from "@holdfast/controller/fleet/host/host.ts";
import type { Sealer } from "@holdfast/controller/kernel/secrets/sealer.ts";
import type { CollectionSet } from "@holdfast/controller/kernel/store/collection-set.ts";
import type { Changes } from "@holdfast/controller/kernel/store/unit-of-work.ts";
import { completed, operationKind } from "@holdfast/controller/operation/operation.ts";
import type { ResourceKind } from "@holdfast/controller/resource-kind/resource-kind.ts";
import { databaseUserKind } from "@holdfast/controller/services/contents/user/database-user.ts";
import { createFilesKeyChanges } from "@holdfast/controller/services/files/files-key-changes.ts";
import { managedServiceKind } from "@holdfast/controller/services/service/managed-service.ts";

/** The kind of apps over a store, without machines. */
export interface AppResources {
  readonly kind: ResourceKind;
  appOf(id: string): Promise<AppObject | undefined>;
  /** Ends the operation in progress, as machines would by their reports. */
  complete(unit: Changes, id: string): Promise<void>;
  /** Ends the deployment in progress as failed, as the reconciler of apps does. */
  fail(unit: Changes, id: string, reason: string): Promise<void>;
}

export interface AppResourcesDeps {
  readonly set: CollectionSet;
  readonly quotas: Quotas;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** Opens the kinds that it needs: call it before the set is ready. */
export function createAppResources({ set, quotas, sealer, clock, newId }: AppResourcesDeps): AppResources {
  const apps = set.open(appKind);
  const deployments = set.open(deploymentKind);
  const operations = set.open(operationKind);
  const services = set.open(managedServiceKind);
  const users = set.open(databaseUserKind);
  const image = { engine: "app", version: "1", available: true, image: "apps" };
  const host = newHost(
    "host",
    { zone: "local", address: "", memoryOvercommit: null, diskOvercommit: null },
    clock.now(),
  );
  const object = { ...host, status: { ...host.status, images: [image] } };
  const hosts = { values: () => [{ object, modRevision: 1n }].values() };
  const shared = { deployments, operations, hosts, catalog: defaultCatalog, sealer, newId, clock };
  const hosting = createHostingCommands({
    ...shared,
    registry: { address: "registry.test", authorities: () => "" },
    attached: { prefixesOf: ({ spec }) => spec.attachments.flatMap(({ prefix }) => prefix ?? []) },
    ingress: { urlOf: () => "https://app.test" },
    certificateOf: () => undefined,
  });
  const keys = createFilesKeyChanges({ users, sealer, clock, newId });
  return {
    kind: createAppKind({
      ...shared,
      apps,
      hosting,
      attach: createBundleAttachments({ apps, services, keys, sealer, clock, newId }),
      endAttachment: async () => undefined,
      quotas,
      registryAddress: "registry.test",
      domain: "platform.test",
      isIssuer: () => false,
      privateAddressOf: ({ metadata }) => ({ host: `${metadata.name}.private.test`, port: 7_000 }),
    }),
    appOf: async (id) => (await apps.getCurrent(id))?.object,
    async fail(unit, id, reason) {
      const app = await apps.getCurrent(id);
      if (app === undefined || !isHosted(app.object)) throw new Error("there is no app");
      const { spec, status } = app.object;
      const { deploymentId: failedId } = spec.hosting;
      const deployment = await deployments.getCurrent(failedId);
      const operation = await operations.getCurrent(status.hosting.operationId ?? "");
      if (deployment === undefined || operation === undefined) throw new Error("no deployment is in progress");
      const result = { state: "failed", reason, lastLines: [] } as const;
      const ended = { ...deployment.object, status: finishedDeployment(deployment.object, result, clock.now()) };
      unit.update(deploymentKind, deployment, ended);
      unit.update(operationKind, operation, completed(operation.object, clock.now()));
      const hosting = { ...spec.hosting, deploymentId: status.hosting.servingId ?? failedId };
      const after = { hosting: { ...status.hosting, operationId: null, failedId } };
      unit.update(appKind, app, { ...app.object, spec: { ...spec, hosting }, status: after });
    },
    async complete(unit, id) {
      const app = await apps.getCurrent(id);
      if (app === undefined || !isHosted(app.object)) throw new Error("no operation is in progress");
      const { metadata, spec, status } = app.object;
      const operation = await operations.getCurrent(status.hosting.operationId ?? "");
      if (operation === undefined) throw new Error("no operation is in progress");
      unit.update(operationKind, operation, completed(operation.object, clock.now()));
      if (metadata.deletionRequestedAt !== undefined) {
        unit.remove(appKind, app);
        unit.releaseName(appKind, metadata.organizationId, metadata.name);
        return;
      }
      const hostingStatus = { ...status.hosting, operationId: null, servingId: spec.hosting.deploymentId };
      unit.update(appKind, app, { ...app.object, status: { hosting: { ...hostingStatus, state: "Running" } } });
    },
  };
}
