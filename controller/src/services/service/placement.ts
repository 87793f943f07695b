import type { Clock } from "@holdfast/common/clock.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import { claimedMachine, type WaitingMachines } from "#fleet/waiting-machine/waiting-machines.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { type ManagedServiceObject, primaryOf } from "./managed-service.ts";
import { machineSpecOf, placedOn } from "./service-machine.ts";
import { hostKind } from "#fleet/host/host.ts";
import { machineKind } from "#fleet/machine/machine.ts";

/** A new service with the machine that it begins on. */
export interface Placement {
  /** Its node has the id of a machine that waits, if there is one that fits. */
  readonly service: ManagedServiceObject;
  /** Makes the machine the service's own, and promised on its host, in the transaction that makes the service: none of it is ever there without the rest. */
  claim(unit: UnitOfWork): void;
  /** The transaction did not come about. */
  giveBack(): void;
}

export interface PlacementDeps {
  readonly waiting: WaitingMachines;
  readonly catalog: CatalogData;
  readonly clock: Clock;
}

/** Places a new service. Without a machine that waits, its reconciler has one made. */
export async function placeService(
  asked: ManagedServiceObject,
  { waiting, catalog, clock }: PlacementDeps,
  signal: AbortSignal,
): Promise<Placement> {
  const wanted = machineSpecOf(asked, primaryOf(asked), catalog);
  const taken = await waiting.take(wanted, signal);
  if (taken === undefined) return { service: asked, claim() {}, giveBack() {} };
  const { machine, promise, giveBack } = taken;
  const service = placedOn(asked, machine.object.metadata.id);
  const node = primaryOf(service);
  const { organizationId } = service.metadata;
  const owner = { organizationId, name: node.hostname, spec: machineSpecOf(service, node, catalog) };
  return {
    service,
    claim(unit) {
      unit.update(machineKind, machine, claimedMachine(machine.object, owner, clock.now()));
      if (promise !== undefined) unit.update(hostKind, promise.of, promise.after);
    },
    giveBack,
  };
}
