import type { Clock } from "@holdfast/common/clock.ts";
import type { CatalogData } from "../catalog/catalog.ts";
import type { DatabaseUserObject } from "../database-user/database-user.ts";
import type { MachineObject } from "../machine/machine.ts";
import { chosenImages } from "./trial/other-image.ts";
import { snapshotFor } from "./trial/trial-seal.ts";
import { findOperation } from "../operation/find-operation.ts";
import { completed, type OperationObject } from "../operation/operation.ts";
import type { Collection } from "../store/collection.ts";
import { keyOf, nextMetadata, type Stored } from "../store/resource.ts";
import { Conflict, type UnitOfWork } from "../store/unit-of-work.ts";
import type { DnsRecordObject } from "../zone/dns-record.ts";
import type { ZoneRecords } from "../zone/zone-records.ts";
import type { InstanceDelivery } from "./instance-delivery.ts";
import { instanceSpecOf } from "./instance-spec.ts";
import type { ManagedServiceObject } from "./managed-service.ts";
import type { ObservedService, ServiceStep } from "./managed-service-plan.ts";
import type { NameVerification } from "./name-verification.ts";
import { serviceEvent } from "./service-events.ts";
import { newMachine } from "./service-machine.ts";
import { namesOf } from "./service-names.ts";
import { withdrawn } from "./service-observer.ts";

export interface StepDeps {
  readonly begin: () => UnitOfWork;
  readonly machines: Collection<MachineObject>;
  readonly records: Collection<DnsRecordObject>;
  readonly zone: ZoneRecords;
  readonly users: Collection<DatabaseUserObject>;
  readonly operations: Collection<OperationObject>;
  readonly delivery: InstanceDelivery;
  readonly names: NameVerification;
  readonly catalog: CatalogData;
  readonly clock: Clock;
}

/**
 * Performs one step of a plan. Each may be performed again after a crash; a Conflict means that the world moved on: what is
 * written is written for the service as it was when this was decided, and for no service that goes another way, or is gone.
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
      unit.create("machine", newMachine(object, step.node, deps.catalog, deps.clock.now()));
      await settle(unit, deps.machines, signal);
      return;
    }
    case "powerMachine":
      return changeMachine(step.node.id, service, deps, signal, (machine) =>
        withSpec(machine, { power: step.power }, deps.clock.now()),
      );
    case "placeImage":
      return changeMachine(step.node.id, service, deps, signal, (machine) => {
        const snapshot = snapshotFor(object, machine);
        return withSpec(machine, { ...chosenImages(object), power: "on", snapshot }, deps.clock.now());
      });
    case "dropSnapshot":
      return changeMachine(step.node.id, service, deps, signal, (machine) =>
        withSpec(machine, { snapshot: null }, deps.clock.now()),
      );
    case "deleteMachine":
      return changeMachine(step.node.id, service, deps, signal, (machine) => {
        const now = deps.clock.now();
        return { ...machine, metadata: { ...machine.metadata, deletionRequestedAt: now, updatedAt: now } };
      });
    case "converge": {
      // Each kind has a watch of its own: what came with the service in one transaction may not all be in memory yet.
      const { modRevision } = service;
      await Promise.all([deps.machines.reached(modRevision, 1_000), deps.users.reached(modRevision, 1_000)]);
      const { address = "", publicAddress = "" } = deps.machines.get(step.node.id)?.object.status ?? {};
      const addresses = { address, publicAddress };
      const users = usersOf(id, deps.users);
      const { node, running, generation } = step;
      const args = { service: object, node, addresses, users, catalog: deps.catalog, running, generation };
      deps.delivery.deliver(node.id, instanceSpecOf(args));
      return;
    }
    case "publishNames":
      return publishNames(service, observed, deps, signal);
    case "verifyNames":
      await deps.names.verify(id, namesOf(object, observed.nodes), signal);
      return;
    case "withdrawNames":
      return withdrawNames(object, deps, signal);
    case "forget":
      return forget(service, deps, signal);
  }
}

/** The managed users of a service, by name. */
function usersOf(serviceId: string, users: Collection<DatabaseUserObject>): DatabaseUserObject[] {
  const found: DatabaseUserObject[] = [];
  for (const { object } of users.values()) if (object.spec.serviceId === serviceId) found.push(object);
  return found.sort((a, b) => (a.spec.username < b.spec.username ? -1 : 1));
}

function withSpec(machine: MachineObject, change: Partial<MachineObject["spec"]>, now: number): MachineObject {
  const metadata = nextMetadata(machine.metadata, now);
  return { ...machine, metadata, spec: { ...machine.spec, ...change } };
}

function beginFor({ object, modRevision }: Stored<ManagedServiceObject>, { begin }: StepDeps): UnitOfWork {
  const unit = begin();
  unit.onlyWhile({ key: keyOf("managed-service", object.metadata.id), modRevision });
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
  unit.update("machine", machine, change(machine.object));
  await settle(unit, deps.machines, signal);
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
  const unit = beginFor(service, deps);
  const changed = deps.zone.put(unit, ownerOf(object), namesOf(object, observed.nodes));
  if (changed) await settle(unit, deps.records, signal);
}

async function withdrawNames(service: ManagedServiceObject, deps: StepDeps, signal: AbortSignal): Promise<void> {
  const unit = deps.begin();
  if (deps.zone.remove(unit, ownerOf(service))) await settle(unit, deps.records, signal);
  await deps.names.verify(service.metadata.id, withdrawn(service), signal);
}

/** The last step of a deletion: what is left of the service in the store goes in one transaction. */
async function forget(service: Stored<ManagedServiceObject>, deps: StepDeps, signal: AbortSignal): Promise<void> {
  const { metadata, spec, status } = service.object;
  // From its deletion on nothing is made for it; what was made before may not all be in memory yet.
  await Promise.all([deps.machines, deps.users].map(({ reached }) => reached(service.modRevision, 1_000)));
  if (spec.nodes.some(({ id }) => deps.machines.get(id) !== undefined)) throw new Conflict();
  const unit = deps.begin();
  for (const user of usersOf(metadata.id, deps.users)) {
    const stored = deps.users.get(user.metadata.id);
    if (stored !== undefined) unit.remove("database-user", stored);
  }
  const operation = await findOperation(deps.operations, status.operationId, signal);
  if (operation !== undefined) unit.update("operation", operation, completed(operation.object, deps.clock.now()));
  unit.releaseName("managed-service", metadata.organizationId, metadata.name);
  unit.remove("managed-service", service);
  unit.event(serviceEvent("service.deleted", service.object));
  await unit.commit(signal);
  deps.names.forget(metadata.id);
}

/** Commits and waits until the watched memory has it, so that the next look sees what was just done. */
async function settle(
  unit: UnitOfWork,
  changed: { reached: Collection<unknown>["reached"] },
  signal: AbortSignal,
): Promise<void> {
  const revision = await unit.commit(signal);
  await changed.reached(revision, 1_000);
}
