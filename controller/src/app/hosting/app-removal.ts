import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { type MachineObject, machineKind } from "#fleet/machine/machine.ts";
import type { ZoneRecords } from "#fleet/zone/zone-records.ts";
import { again, type ReconcileOutcome, settled } from "#kernel/runtime/reconciler.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import {
  completed,
  findOperation,
  isFinished,
  type OperationObject,
  operationKind,
  progressed,
} from "#operation/operation.ts";
import { type AppObject, appKind } from "../app/app.ts";
import type { AppNodes } from "./app-nodes.ts";
import type { AttachedServices } from "./attached-services.ts";
import { appOfDeployment, type DeploymentObject, deploymentKind } from "./deployment.ts";
import type { FloatingIps } from "./floating-ip.ts";
import type { HostedApp } from "./hosted-app.ts";
import type { PlatformApi } from "./platform-api.ts";

export interface AppRemovalDeps extends Pick<AppNodes, "machinesOf"> {
  readonly deployments: Pick<Collection<DeploymentObject>, "by">;
  readonly operations: Collection<OperationObject>;
  readonly zone: Pick<ZoneRecords, "remove">;
  readonly attached: Pick<AttachedServices, "admit">;
  readonly platformApi: Pick<PlatformApi, "removeToken">;
  readonly floatingIps: Pick<FloatingIps, "release">;
  /** Removes what other parts of the app's system have of a deleted app, in the unit of work that deletes it. */
  readonly removeRest: (unit: UnitOfWork, app: AppObject, signal: AbortSignal) => Promise<void>;
  readonly begin: () => UnitOfWork;
  readonly commit: (unit: UnitOfWork, signal: AbortSignal) => Promise<ReconcileOutcome>;
  readonly clock: Clock;
  readonly log: Log;
}

/** The steps by which hosted apps are removed; each is repeated after a crash. */
export interface AppRemoval {
  /** The next step of the removal of an app: its access to services, its machines, then the app itself. */
  remove(app: Stored<HostedApp>, signal: AbortSignal): Promise<ReconcileOutcome>;
  /** Deletes the machines of an app that is absent, such as with its organization. */
  removeMachines(appId: string, signal: AbortSignal): Promise<ReconcileOutcome>;
}

const recheckMs = 2_000;

export function createAppRemoval(deps: AppRemovalDeps): AppRemoval {
  const { machinesOf, deployments, operations, zone, begin, commit, clock, log } = deps;
  return {
    async removeMachines(id, signal) {
      const unit = begin();
      const hasRecords = zone.remove(unit, { kind: appKind.name, id });
      return requestDeletion(unit, machinesOf(id), clock.now()) || hasRecords ? commit(unit, signal) : settled;
    },

    async remove(app, signal) {
      const { id, organizationId, name } = app.object.metadata;
      const found = machinesOf(id);
      const operation = await findOperation(operations, app.object.status.hosting.operationId, signal);
      const isInProgress = operation !== undefined && !isFinished(operation.object);
      const unit = begin();
      // The services change once more when the attachments end.
      if (deps.attached.admit(unit, app.object, [])) return commit(unit, signal);
      if (requestDeletion(unit, found, clock.now())) {
        const progress = { step: "DeleteMachines", progressPct: 10, mark: `${found.length} machines` };
        if (isInProgress) unit.update(operationKind, operation, progressed(operation.object, progress, clock.now()));
        return commit(unit, signal);
      }
      if (found.length > 0) return again(recheckMs, "its machines are being deleted");
      zone.remove(unit, { kind: appKind.name, id });
      await deps.removeRest(unit, app.object, signal);
      await deps.platformApi.removeToken(unit, app.object, signal);
      await deps.floatingIps.release(unit, app.object, signal);
      for (const each of deployments.by(appOfDeployment, id)) unit.remove(deploymentKind, each);
      unit.remove(appKind, app);
      unit.releaseName(appKind, organizationId, name);
      if (isInProgress) unit.update(operationKind, operation, completed(operation.object, clock.now()));
      log.info("app deleted", { app: id });
      return commit(unit, signal);
    },
  };
}

/** Adds the deletion of the machines that are not being deleted to the unit of work; false if there are none. */
export function requestDeletion(unit: UnitOfWork, found: readonly Stored<MachineObject>[], now: number): boolean {
  const remaining = found.filter(({ object }) => object.metadata.deletionRequestedAt === undefined);
  for (const machine of remaining) {
    const metadata = { ...machine.object.metadata, deletionRequestedAt: now };
    unit.update(machineKind, machine, { ...machine.object, metadata });
  }
  return remaining.length > 0;
}
