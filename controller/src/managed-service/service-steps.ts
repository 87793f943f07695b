import type { Clock } from "@holdfast/common/clock.ts";
import type { CatalogData } from "../catalog/catalog.ts";
import type { DatabaseUserObject } from "../database-user/database-user.ts";
import type { MachineObject } from "../machine/machine.ts";
import { snapshotFor } from "./trial/trial-seal.ts";
import { findOperation } from "../operation/find-operation.ts";
import { completed, type OperationObject } from "../operation/operation.ts";
import type { Collection } from "../store/collection.ts";
import { keyOf, type Stored } from "../store/resource.ts";
import type { UnitOfWork } from "../store/unit-of-work.ts";
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

/** Performs one step of a plan. Each may be performed again after a crash; a Conflict means that the world moved on. */
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
      const unit = deps.begin();
      unit.create("machine", newMachine(object, step.node, deps.catalog, deps.clock.now()));
      await settle(unit, deps.machines, signal);
      return;
    }
    case "powerMachine":
      return changeMachine(step.node.id, deps, signal, (machine) =>
        withSpec(machine, { power: step.power }, deps.clock.now()),
      );
    case "placeImage":
      return changeMachine(
        step.node.id,
        deps,
        signal,
        (machine) =>
          withSpec(
            machine,
            { image: object.spec.image, power: "on", snapshot: snapshotFor(object, machine) },
            deps.clock.now(),
          ),
        // What was decided on the data holds for this service, not for one that goes another way by now.
        { key: keyOf("managed-service", id), modRevision: service.modRevision },
      );
    case "dropSnapshot":
      return changeMachine(step.node.id, deps, signal, (machine) =>
        withSpec(machine, { snapshot: null }, deps.clock.now()),
      );
    case "deleteMachine":
      return changeMachine(step.node.id, deps, signal, (machine) => {
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
      return publishNames(object, observed, deps, signal);
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
  const metadata = { ...machine.metadata, generation: machine.metadata.generation + 1, updatedAt: now };
  return { ...machine, metadata, spec: { ...machine.spec, ...change } };
}

async function changeMachine(
  id: string,
  deps: StepDeps,
  signal: AbortSignal,
  change: (machine: MachineObject) => MachineObject,
  onlyWhile?: Parameters<UnitOfWork["onlyWhile"]>[0],
): Promise<void> {
  const machine = deps.machines.get(id);
  if (machine === undefined) return;
  const unit = deps.begin();
  if (onlyWhile !== undefined) unit.onlyWhile(onlyWhile);
  unit.update("machine", machine, change(machine.object));
  await settle(unit, deps.machines, signal);
}

function ownerOf(service: ManagedServiceObject) {
  return { kind: "managed-service", id: service.metadata.id };
}

async function publishNames(
  service: ManagedServiceObject,
  observed: ObservedService,
  deps: StepDeps,
  signal: AbortSignal,
): Promise<void> {
  const unit = deps.begin();
  const changed = deps.zone.put(unit, ownerOf(service), namesOf(service, observed.nodes));
  if (changed) await settle(unit, deps.records, signal);
}

async function withdrawNames(service: ManagedServiceObject, deps: StepDeps, signal: AbortSignal): Promise<void> {
  const unit = deps.begin();
  if (deps.zone.remove(unit, ownerOf(service))) await settle(unit, deps.records, signal);
  await deps.names.verify(service.metadata.id, withdrawn(service), signal);
}

/** The last step of a deletion: what is left of the service in the store goes in one transaction. */
async function forget(service: Stored<ManagedServiceObject>, deps: StepDeps, signal: AbortSignal): Promise<void> {
  const { metadata, status } = service.object;
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
