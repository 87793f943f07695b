import type { Clock } from "@holdfast/common/clock.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import { databaseUserKind, type DatabaseUserObject, usersOfService } from "../../contents/user/database-user.ts";
import { machineKind, type MachineObject } from "#fleet/machine/machine.ts";
import { desiredImages } from "../canary/node-image.ts";
import { snapshotFor } from "../canary/write-fence.ts";
import { completed, findOperation, operationKind, type OperationObject } from "#operation/operation.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, nextMetadata, type Stored } from "#kernel/store/resource.ts";
import { Conflict, type UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { type DnsRecordObject, privateNameOf } from "#fleet/zone/dns-record.ts";
import type { ZoneRecords } from "#fleet/zone/zone-records.ts";
import type { WorkloadDelivery } from "#fleet/task/workload-delivery.ts";
import { instanceSpecOf } from "./instance-spec.ts";
import { managedServiceKind, type ManagedServiceObject, type NodeSpec } from "../managed-service.ts";
import type { ObservedService, ServiceStep } from "./observed-service.ts";
import type { NameVerification } from "../network/name-verification.ts";
import { nodeEvent, serviceEvent } from "../service-events.ts";
import type { ServiceBackups } from "../service-backups.ts";
import type { FenceOrders } from "../member/primary-replicas/failover/fence-orders.ts";
import type { FailureDetector } from "../member/primary-replicas/failover/failure-detector.ts";
import { changePrimary } from "../member/primary-replicas/change-primary.ts";
import { switchOver } from "../member/primary-replicas/switch-over.ts";
import { resizeMachine } from "#fleet/placement/resize-machine.ts";
import type { HostObject } from "#fleet/host/host.ts";
import { replicationSecretOf } from "../member/new-replica.ts";
import { newMachine } from "../service-machine.ts";
import { namesOf, type ServiceName } from "../network/service-names.ts";
import { engineProfileOf } from "../../engine/engine-profiles.ts";
import { isReplicated } from "../member/members.ts";
import { withdrawn } from "./service-observer.ts";
import { takesBackups } from "../member/member-roles.ts";

export interface StepDeps {
  readonly begin: () => UnitOfWork;
  readonly machines: Collection<MachineObject>;
  readonly hosts: Pick<Collection<HostObject>, "getCurrent">;
  readonly records: Collection<DnsRecordObject>;
  readonly zone: ZoneRecords;
  readonly users: Collection<DatabaseUserObject>;
  readonly operations: Collection<OperationObject>;
  readonly delivery: WorkloadDelivery;
  readonly names: NameVerification;
  readonly backups: ServiceBackups;
  readonly fleet: Fleet;
  readonly failureDetector: FailureDetector;
  readonly fences: FenceOrders;
  readonly services: Pick<Collection<unknown>, "untilRevision">;
  readonly catalog: CatalogData;
  readonly sealer: Pick<Sealer, "open">;
  readonly clock: Clock;
}

/**
 * Performs one step of a plan. A step may be repeated after a crash. Throws Conflict if the service has changed since
 * the step was planned.
 */
export async function performServiceStep(
  step: ServiceStep,
  service: Stored<ManagedServiceObject>,
  observed: ObservedService,
  deps: StepDeps,
  signal: AbortSignal,
): Promise<void> {
  const { object } = service;
  const { id } = object.metadata;
  switch (step.kind) {
    case "createMachine": {
      const unit = beginFor(service, deps);
      unit.create(machineKind, newMachine(object, step.node, deps.catalog, deps.clock.now()));
      await settle(unit, deps.machines, signal);
      return;
    }
    case "powerMachine":
      return changeMachine(step.node.id, service, deps, signal, (machine) =>
        withSpec(machine, { power: step.power }, deps.clock.now()),
      );
    case "installImage":
      return changeMachine(step.node.id, service, deps, signal, (machine) => {
        const snapshot = snapshotFor(object, machine);
        return withSpec(machine, { ...desiredImages(object), power: "on", snapshot }, deps.clock.now());
      });
    case "fitMachine":
      return changeMachine(step.node.id, service, deps, signal, (machine) =>
        withSpec(machine, { ...step.size, ownMemoryBytes: undefined }, deps.clock.now()),
      );
    case "raiseMemory": {
      const machine = deps.machines.get(step.node.id)?.object;
      if (machine === undefined) return;
      const { vcpu, memoryBytes, rootBytes, diskBytes, ownMemoryBytes = memoryBytes } = machine.spec;
      const size = { vcpu, memoryBytes: step.memoryBytes, rootBytes, diskBytes, ownMemoryBytes };
      const unit = beginFor(service, deps);
      await resizeMachine(step.node.id, size, unit, deps, signal);
      await settle(unit, deps.machines, signal);
      return;
    }
    case "deleteSnapshot":
      return changeMachine(step.node.id, service, deps, signal, (machine) =>
        withSpec(machine, { snapshot: null }, deps.clock.now()),
      );
    case "deleteMachine":
      return changeMachine(step.node.id, service, deps, signal, (machine) => {
        const now = deps.clock.now();
        return { ...machine, metadata: { ...machine.metadata, deletionRequestedAt: now, updatedAt: now } };
      });
    case "converge": {
      // Each kind has a separate watch, so objects of one transaction may reach memory at different times.
      const { modRevision } = service;
      await Promise.all([
        deps.machines.untilRevision(modRevision, 1_000),
        deps.users.untilRevision(modRevision, 1_000),
      ]);
      const machine = deps.machines.get(step.node.id)?.object;
      const { address = "", publicAddress = "" } = machine?.status ?? {};
      const addresses = { address, publicAddress };
      const users = usersOfService(deps.users, id);
      const { node, running, generation } = step;
      const addressOf = (nodeId: string) => deps.machines.get(nodeId)?.object.status.address ?? "";
      const replicationSecret = replicationSecretOf(object, deps.sealer);
      const leaseProtocol = deps.fleet.session(node.id)?.primaryLeaseVersion ?? 0;
      const { catalog } = deps;
      const recoveryMemoryBytes = machine?.spec.ownMemoryBytes === undefined ? 0 : machine.spec.memoryBytes;
      const target = { service: object, node, running, generation, leaseProtocol, recoveryMemoryBytes };
      const passwordOf = (user: DatabaseUserObject) =>
        deps.sealer.open(user.spec.sealedPassword, keyOf(databaseUserKind, user.metadata.id));
      const args = { ...target, addresses, addressOf, users, replicationSecret, passwordOf, catalog };
      const value = { ...instanceSpecOf(args), ...(takesBackups(object, node) && deps.backups.instanceOf(object)) };
      deps.delivery.deliver(node.id, { workload: { case: "engine", value } });
      return;
    }
    case "removeNode":
      return removeNode(step.node, service, deps, signal);
    case "changePrimary":
      return changePrimary(service, observed, deps, signal);
    case "switchOver":
      return switchOver(service, step.to, deps, signal);
    case "publishNames":
      return publishNames(service, observed, deps, signal);
    case "verifyNames":
      await deps.names.verify(id, namesOf(object, observed.nodes), signal);
      return;
    case "withdrawNames":
      return withdrawNames(object, deps, signal);
    case "forget":
      return removeService(service, deps, signal);
  }
}

function withSpec(machine: MachineObject, change: Partial<MachineObject["spec"]>, now: number): MachineObject {
  const metadata = nextMetadata(machine.metadata, now);
  return { ...machine, metadata, spec: { ...machine.spec, ...change } };
}

function beginFor({ object, modRevision }: Stored<ManagedServiceObject>, { begin }: StepDeps): UnitOfWork {
  const unit = begin();
  unit.onlyWhile({ key: keyOf(managedServiceKind, object.metadata.id), modRevision });
  return unit;
}

async function changeMachine(
  id: string,
  service: Stored<ManagedServiceObject>,
  deps: StepDeps,
  signal: AbortSignal,
  change: (machine: MachineObject) => MachineObject,
): Promise<void> {
  const machine = deps.machines.get(id);
  if (machine === undefined) return;
  const unit = beginFor(service, deps);
  unit.update(machineKind, machine, change(machine.object));
  await settle(unit, deps.machines, signal);
}

/**
 * Removes a node without a machine. Waits for memory to be current first, so that an absent machine is certainly
 * deleted.
 */
async function removeNode(
  node: NodeSpec,
  service: Stored<ManagedServiceObject>,
  deps: StepDeps,
  signal: AbortSignal,
): Promise<void> {
  await deps.machines.untilRevision(service.modRevision, 1_000);
  if (deps.machines.get(node.id) !== undefined) throw new Conflict();
  const { object } = service;
  const unit = deps.begin();
  const nodes = object.spec.nodes.filter(({ id }) => id !== node.id);
  unit.update(managedServiceKind, service, { ...object, spec: { ...object.spec, nodes } });
  unit.event(nodeEvent("node.removed", object, node));
  await settle(unit, deps.services, signal);
}

function ownerOf(service: ManagedServiceObject) {
  return { kind: "managed-service", id: service.metadata.id };
}

async function publishNames(
  service: Stored<ManagedServiceObject>,
  observed: ObservedService,
  deps: StepDeps,
  signal: AbortSignal,
): Promise<void> {
  const { object } = service;
  const names = namesOf(object, observed.nodes);
  const isDelivered = !hasNewAddress(object, names, deps);
  const unit = isDelivered ? beginFor(service, deps) : deps.begin();
  if (!isDelivered) {
    // Members got their settings before this member had an address.
    const instanceGeneration = object.spec.instanceGeneration + 1;
    unit.update(managedServiceKind, service, { ...object, spec: { ...object.spec, instanceGeneration } });
  }
  const changed = deps.zone.put(unit, ownerOf(object), names);
  if (changed || !isDelivered) await settle(unit, deps.records, signal);
}

/** True if a member has an address that is not published, and other members admit it by its address. */
function hasNewAddress(
  { spec }: ManagedServiceObject,
  names: readonly ServiceName[],
  { records }: Pick<StepDeps, "records">,
): boolean {
  if (!isReplicated(spec) || engineProfileOf(spec.databaseType).replicas?.admitByAddress !== true) return false;
  const members = new Set(spec.nodes.map(({ hostname }) => privateNameOf(hostname)));
  return names.some(
    ({ name, addresses }) => members.has(name) && records.get(name)?.object.spec.addresses.join() !== addresses.join(),
  );
}

async function withdrawNames(service: ManagedServiceObject, deps: StepDeps, signal: AbortSignal): Promise<void> {
  const unit = deps.begin();
  if (deps.zone.remove(unit, ownerOf(service))) await settle(unit, deps.records, signal);
  await deps.names.verify(service.metadata.id, withdrawn(service), signal);
}

/** The last step of a deletion: removes the service and its remaining objects in one transaction. */
async function removeService(
  service: Stored<ManagedServiceObject>,
  deps: StepDeps,
  signal: AbortSignal,
): Promise<void> {
  const { metadata, spec, status } = service.object;
  // After the start of a deletion nothing is created for the service, but earlier objects may not be in memory yet.
  await Promise.all([deps.machines, deps.users].map(({ untilRevision }) => untilRevision(service.modRevision, 1_000)));
  const unit = deps.begin();
  for (const { id } of spec.nodes) {
    const machine = deps.machines.get(id);
    if (machine === undefined) continue;
    if (!deps.backups.retainsDisks(service.object) || machine.object.spec.power === "on") throw new Conflict();
    unit.onlyWhile({ key: keyOf(machineKind, id), modRevision: machine.modRevision });
  }
  deps.backups.recordDeletion(unit, service.object, usersOfService(deps.users, metadata.id));
  for (const user of usersOfService(deps.users, metadata.id)) {
    const stored = deps.users.get(user.metadata.id);
    if (stored !== undefined) unit.remove(databaseUserKind, stored);
  }
  const operation = await findOperation(deps.operations, status.operationId, signal);
  if (operation !== undefined) unit.update(operationKind, operation, completed(operation.object, deps.clock.now()));
  unit.releaseName(managedServiceKind, metadata.organizationId, metadata.name);
  unit.remove(managedServiceKind, service);
  unit.event(serviceEvent("service.deleted", service.object));
  await unit.commit(signal);
  deps.names.forget(metadata.id);
}

/** Commits, and waits until memory has the change, so that the next round reads it. */
async function settle(
  unit: UnitOfWork,
  changed: { untilRevision: Collection<unknown>["untilRevision"] },
  signal: AbortSignal,
): Promise<void> {
  const revision = await unit.commit(signal);
  await changed.untilRevision(revision, 1_000);
}
