import { isDeepStrictEqual } from "node:util";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { FleetSystem } from "#fleet/fleet-system.ts";
import type { ZoneRecords } from "#fleet/zone/zone-records.ts";
import { machineKind } from "#fleet/machine/machine.ts";
import { createWorkloadDelivery } from "#fleet/task/workload-delivery.ts";
import { again, type ReconcileOutcome, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { nextMetadata, type Stored } from "#kernel/store/resource.ts";
import { Conflict, type UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { findOperation, isFinished, type OperationObject, operationKind } from "#operation/operation.ts";
import { type AppObject, appKind } from "../app/app.ts";
import type { AppIngress } from "../ingress/app-ingress.ts";
import { createAppNodes, newAppMachine } from "./app-nodes.ts";
import type { AttachedServices } from "./attached-services.ts";
import { type AppRemovalDeps, createAppRemoval, requestDeletion } from "./app-removal.ts";
import { type AppWorkloadDeps, appWorkload } from "./app-workload.ts";
import { appOfDeployment, type DeploymentObject, deploymentKind, finishedDeployment } from "./deployment.ts";
import { type DeploymentImage, imageOfDeployment } from "./deployment-image.ts";
import { supersededDeployments } from "./deployment-retention.ts";
import { type HostedApp, isHosted } from "./hosted-app.ts";
import { hostingEvent } from "./hosting-events.ts";
import { lineMax } from "./hosting.ts";
import { appHealth } from "./monitored-app.ts";
import { type HostingPlan, planHosting } from "./hosting-plan.ts";
import type { ObservedNode } from "./observed-node.ts";
import { operationAfter } from "./hosting-progress.ts";
import type { PlatformApi } from "./platform-api.ts";

export interface HostingWorkDeps
  extends AppWorkloadDeps,
    Pick<FleetSystem, "machines" | "hosts">,
    Pick<AppRemovalDeps, "removeRest" | "floatingIps"> {
  readonly attached: AttachedServices;
  readonly platformApi: PlatformApi;
  readonly ingress: Pick<AppIngress, "addressesOf" | "hostOf" | "isReachable">;
  readonly zone: Pick<ZoneRecords, "put" | "remove">;
  readonly fleet: Pick<Fleet, "run" | "session" | "observation" | "subscribe">;
  readonly apps: Collection<AppObject>;
  readonly deployments: Collection<DeploymentObject>;
  readonly operations: Collection<OperationObject>;
  readonly catalog: CatalogData;
  readonly begin: () => UnitOfWork;
  readonly newId: () => string;
  readonly clock: Clock;
  readonly log: Log;
}

const recheckMs = 2_000;
/** Interval of checks of the ingresses, until they serve a new name. */
const publishMs = 200;
const recordTtlS = 30;
const notInTime = "The machines of the app did not report in time.";
const notReached = "The ingress did not pass requests to the app in time.";

/**
 * Converges each hosted app: its machines, its image's digest, the deliveries to the machines, its state and the
 * operation in progress. Every change of one round is one unit of work, so a controller that ends at any line leaves
 * what another one continues. Key: id of the app.
 */
export function createHostingWork(deps: HostingWorkDeps): ControlLoop {
  const { apps, deployments, machines, fleet, operations, begin, clock, log } = deps;
  const delivery = createWorkloadDelivery(deps);
  const nodesOfApps = createAppNodes(deps);
  const { observe, reasonOf } = nodesOfApps;
  const removal = createAppRemoval({ ...deps, machinesOf: nodesOfApps.machinesOf, commit });

  async function reconcile(id: string, signal: AbortSignal): Promise<ReconcileOutcome> {
    const app = await apps.getCurrent(id, signal);
    if (app === undefined) return removal.removeMachines(id, signal);
    if (!isHosted(app.object)) return settled;
    const hosted = { object: app.object, modRevision: app.modRevision };
    if (hosted.object.metadata.deletionRequestedAt !== undefined) return removal.remove(hosted, signal);
    return converge(hosted, signal);
  }

  async function converge(app: Stored<HostedApp>, signal: AbortSignal): Promise<ReconcileOutcome> {
    const { object } = app;
    const { deploymentId } = object.spec.hosting;
    const deployment = deployments.get(deploymentId) ?? (await deployments.getCurrent(deploymentId, signal));
    if (deployment === undefined) throw new Error(`app ${object.metadata.id} has no deployment ${deploymentId}`);
    const operation = await findOperation(operations, object.status.hosting.operationId, signal);
    const found = await imageOfDeployment(object, deployment.object, deps, signal);
    const addresses = addressesOf(object);
    const obstacle = addresses.map((address) => deps.attached.obstacleOf(object, address)).find((each) => each !== "");
    const nodes = object.status.hosting.nodeIds.map(observe);
    const delays = [found.delay, obstacle ?? "", releaseDelay(nodes, deploymentId)];
    const image = { ...found, delay: (delays.find((each) => each !== "") ?? "").slice(0, lineMax) };
    const { isPublished, readyIds, operationId, state } = object.status.hosting;
    const isAwaited = !isPublished && readyIds.length > 0 && (operationId !== null || state === "Deploying");
    const late = isAwaited ? notReached : notInTime;
    const overdue = isOverdue(operation?.object) ? (reasonOf(nodes) ?? late) : undefined;
    const plan = planHosting(object, {
      now: clock.now(),
      newIds: Array.from({ length: object.spec.hosting.replicas }, () => deps.newId()),
      nodes,
      desired: {
        ...(deployment.object.status.state === "failed" && { failure: deployment.object.status.reason }),
        hasDigest: image.digest !== null,
      },
      failure: image.failure ?? overdue,
      platformApi: deps.platformApi.endpoint,
      endpoints: deps.attached.endpointsOf(object),
      drainMs: drainMsOf([deployment.object, ...deliveredOf(object)]),
      isReachable: isAwaited && (await deps.ingress.isReachable(object, signal)),
    });
    const unit = begin();
    const token = await deps.platformApi.ensureToken(unit, object, deps.attached.idsOf(object), signal);
    const isChanged = record(unit, { app, deployment, operation, plan, image, nodes, overdue, token });
    if (isChanged) return commit(unit, signal);
    deliver(object);
    if (isAwaited) return again(publishMs, "its name is published");
    const isIdle = plan.status.operationId === null;
    if (obstacle !== undefined) return again(isIdle ? recheckMs : publishMs, "its services admit it");
    return again(isIdle ? 10 * recheckMs : recheckMs, "machines and their reports");
  }

  /** The deployments that the machines have. */
  function deliveredOf({ status }: HostedApp): readonly DeploymentObject[] {
    return (status.hosting.delivery?.releaseIds ?? []).flatMap((each) => deployments.get(each)?.object ?? []);
  }

  /** Addresses of the app's machines that have one. */
  function addressesOf({ status }: HostedApp): readonly string[] {
    const found = status.hosting.nodeIds.map((id) => machines.get(id)?.object.status.address ?? "");
    return found.filter((address) => address !== "");
  }

  /** Adds the changes of a round to its unit of work; false without one. */
  function record(
    unit: UnitOfWork,
    round: {
      readonly app: Stored<HostedApp>;
      readonly deployment: Stored<DeploymentObject>;
      readonly operation: Stored<OperationObject> | undefined;
      readonly plan: HostingPlan;
      readonly image: DeploymentImage;
      readonly nodes: readonly ObservedNode[];
      readonly overdue: string | undefined;
      readonly token: Awaited<ReturnType<PlatformApi["ensureToken"]>>;
    },
  ): boolean {
    const { app, deployment, operation, plan } = round;
    const { object } = app;
    const now = clock.now();
    for (const id of plan.created) unit.create(machineKind, newAppMachine(object, id, deps.catalog, now));
    const deleted = plan.deleted.flatMap((id) => machines.get(id) ?? []);
    let isChanged = requestDeletion(unit, deleted, now) || plan.created.length > 0 || round.token.isChanged;
    const { ingress, zone } = deps;
    const record = { name: ingress.hostOf(object), addresses: ingress.addressesOf(object), ttlS: recordTtlS };
    isChanged = deps.attached.admit(unit, object, addressesOf(object)) || isChanged;
    isChanged = zone.put(unit, { kind: appKind.name, id: object.metadata.id }, [record]) || isChanged;

    const { result } = plan;
    const status = { ...deployment.object.status, digest: round.image.digest, reason: round.image.delay };
    const lines = result?.kind === "failed" ? result.lastLines.map((line) => line.slice(0, lineMax)) : [];
    const isDone = deployment.object.status.state !== "deploying";
    const nextDeployment = isDone
      ? deployment.object.status
      : result === undefined
        ? status
        : finishedDeployment(
            { ...deployment.object, status },
            result.kind === "serves"
              ? { state: "succeeded", reason: "", lastLines: [] }
              : { state: "failed", reason: result.reason.slice(0, lineMax), lastLines: lines },
            now,
          );
    if (!isDeepStrictEqual(nextDeployment, deployment.object.status)) {
      unit.update(deploymentKind, deployment, { ...deployment.object, status: nextDeployment });
      isChanged = true;
    }

    const nextOperation = operation && operationAfter(operation.object, object, round, now);
    const { admittedBy: _, ...planned } = plan.status;
    const { apiToken } = round.token;
    const admittedBy = deps.attached.idsOf(object);
    const hosting = {
      ...planned,
      operationId: nextOperation && !isFinished(nextOperation) ? object.status.hosting.operationId : null,
      ...(admittedBy.length > 0 && { admittedBy }),
      ...(apiToken && { apiToken }),
    };
    if (
      operation !== undefined &&
      nextOperation !== undefined &&
      !isDeepStrictEqual(nextOperation.status, operation.object.status)
    ) {
      unit.update(operationKind, operation, nextOperation);
      isChanged = true;
    }
    const isReturned = plan.deploymentId !== object.spec.hosting.deploymentId;
    if (isReturned || !isDeepStrictEqual(hosting, object.status.hosting)) {
      const after: HostedApp = {
        ...object,
        // Later changes start from what serves. The failed deployment keeps its settings.
        ...(isReturned && {
          metadata: nextMetadata(object.metadata, now),
          spec: { ...object.spec, hosting: { ...object.spec.hosting, deploymentId: plan.deploymentId } },
        }),
        status: { hosting },
      };
      unit.update(appKind, app, after);
      announce(unit, after, deployment.object, plan, isDone);
      const [from, to] = [appHealth(object), appHealth(after)];
      if (from.status !== to.status)
        unit.event(hostingEvent("app.health_changed", after, { from: from.status, to: to.status, reason: to.reason }));
      isChanged = true;
      if (plan.event !== undefined)
        log.info("app changed state", {
          app: object.metadata.id,
          from: object.status.hosting.state,
          event: plan.event,
          to: hosting.state,
        });
    }
    if (!isDone && result !== undefined)
      for (const each of supersededDeployments(object, deployments.by(appOfDeployment, object.metadata.id)))
        unit.remove(deploymentKind, each);
    return isChanged;
  }

  function announce(
    unit: UnitOfWork,
    app: HostedApp,
    deployment: DeploymentObject,
    plan: HostingPlan,
    wasDone: boolean,
  ) {
    const about = { deployment_id: deployment.metadata.id, image_ref: deployment.spec.settings.imageRef };
    const { result } = plan;
    if (!wasDone && result?.kind === "serves") unit.event(hostingEvent("app.deployed", app, about));
    if (!wasDone && result?.kind === "failed")
      unit.event(hostingEvent("app.deploy_failed", app, { ...about, reason: result.reason.slice(0, lineMax) }));
    if (plan.effect === "announceStopped") unit.event(hostingEvent("app.stopped", app, {}));
    if (plan.effect === "announceFailed")
      unit.event(hostingEvent("app.failed", app, { reason: (app.status.hosting.error ?? "").slice(0, lineMax) }));
  }

  /** Delivers the stored delivery to each machine that has not reported its generation. */
  function deliver(app: HostedApp): void {
    const { nodeIds, delivery: current } = app.status.hosting;
    if (current === null) return;
    for (const id of nodeIds) {
      const machine = machines.get(id)?.object;
      if (machine === undefined || machine.status.address === "" || fleet.session(id) === undefined) continue;
      if (Number(fleet.observation(id)?.instance.generation ?? -1) === current.generation) continue;
      if (deps.attached.obstacleOf(app, machine.status.address) !== "") continue;
      const workload = appWorkload(app, current, machine, (each) => deployments.get(each)?.object, deps);
      if (workload !== undefined) delivery.deliver(id, workload);
    }
  }

  /** True once the operation has made no progress for too long. */
  function isOverdue(operation: OperationObject | undefined): boolean {
    const deadline = operation?.status.deadline ?? null;
    return operation !== undefined && !isFinished(operation) && deadline !== null && clock.now() >= deadline;
  }

  async function commit(unit: UnitOfWork, signal: AbortSignal): Promise<ReconcileOutcome> {
    try {
      const revision = await unit.commit(signal);
      const all = [apps, deployments, machines, operations];
      await Promise.allSettled(all.map((each) => each.untilRevision(revision, 1_000)));
    } catch (error) {
      // Another writer was first: the next round sees its change.
      if (!(error instanceof Conflict)) throw error;
    }
    return again(50, "the next step");
  }

  return {
    reconciler: { name: "app", reconcile },
    *keys() {
      yield* apps.ids();
      // An app may be gone before its machines.
      for (const { object } of machines.values())
        if (object.spec.owner?.kind === appKind.name && apps.get(object.spec.owner.id) === undefined)
          yield object.spec.owner.id;
    },
    subscribe(onChange) {
      const ofMachine = (machineId: string) => {
        const owner = machines.get(machineId)?.object.spec.owner;
        if (owner?.kind === appKind.name) onChange(owner.id);
      };
      const watches = [
        apps.subscribe((id) => {
          onChange(id);
          // Those to which it is attached reach it at its machines' addresses.
          for (const { object } of apps.values())
            if (object.spec.attachments.some(({ app, serviceId }) => app === true && serviceId === id))
              onChange(object.metadata.id);
        }),
        deps.attached.subscribe(onChange),
        deps.platformApi.subscribe(onChange),
        fleet.subscribe(ofMachine),
        machines.subscribe((machineId, before) => {
          ofMachine(machineId);
          if (before?.spec.owner?.kind === appKind.name) onChange(before.spec.owner.id);
        }),
      ];
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },
    // Machines, reports and the registry change without the app.
    inputs: (id) => (isExternal(apps.get(id)?.object) ? (apps.get(id)?.modRevision ?? 0n) : clock.now()),
  };
}

/** Reason that a machine gives for the delay of a release, such as a failed pull; empty without one. */
function releaseDelay(nodes: readonly ObservedNode[], deploymentId: string): string {
  const releases = nodes.flatMap(({ report }) => report?.app?.releases ?? []);
  const delayed = releases.filter(({ id, state }) => id === deploymentId && state !== "failed");
  return delayed.map(({ reason }) => reason).find((reason) => reason !== "") ?? "";
}

function drainMsOf(releases: readonly DeploymentObject[]): number {
  return Math.max(...releases.map(({ spec }) => spec.settings.drainSeconds)) * 1_000;
}

function isExternal(app: AppObject | undefined): boolean {
  return app !== undefined && !isHosted(app);
}
