import type { Clock } from "@holdfast/common/clock.ts";
import { ComputeFailure, ComputePending } from "@holdfast/compute/compute-failure.ts";
import type { HostsProvider } from "@holdfast/compute/router/hosts-provider.ts";
import type { MachinePlacement } from "../machine/machine-steps.ts";
import { machineKind, type MachineObject } from "../machine/machine.ts";
import { createKeyedMutex } from "#kernel/runtime/keyed-mutex.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import { Conflict, type UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { hostKind, type HostObject, withPromise } from "../host/host.ts";
import { type PlaceChoice, placeMachine } from "./place-machine.ts";

export interface MachinePlacementDeps {
  readonly hosts: Collection<HostObject>;
  readonly machines: Collection<MachineObject>;
  readonly provider: Pick<HostsProvider, "find">;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  /** May the store be behind what is on the hosts, as after a restore? */
  readonly storeMayBeBehind: () => boolean;
}

/**
 * A host is first heard within this time, as at the first start of the platform; otherwise an operator has to look
 * after it.
 */
const heardWithinMs = 60_000;

function isComing({ status, spec }: HostObject, now: number): boolean {
  return status.state === "joining" && spec.destroyedAt === null && now - status.since < heardWithinMs;
}

/**
 * Every placement also changes its host's object, so of two that choose the same host at once, by whichever controller, one
 * finds a Conflict and looks again, with the other one counted. A host that is cordoned or removed meanwhile is a Conflict
 * as well.
 */
export function createMachinePlacement(deps: MachinePlacementDeps): MachinePlacement {
  const { hosts, machines, begin, clock } = deps;
  // Those of one controller would only collide with one another.
  const oneByOne = createKeyedMutex();

  function refusal(zone: string, reason: string): Error {
    const coming = Iterator.from(hosts.values()).find(
      ({ object }) => object.spec.zone === zone && isComing(object, clock.now()),
    );
    return coming === undefined
      ? new ComputeFailure(reason)
      : new ComputePending(`Host ${coming.object.metadata.id} is joining; it is placed once that is there.`);
  }

  async function tryPlace(machineId: string, signal: AbortSignal): Promise<void> {
    const machine = await machines.fresh(machineId, signal);
    if (machine === undefined || machine.object.spec.hostId !== null) return;
    // A machine made since the snapshot stays on its host: a second one elsewhere would be a twin.
    const found = deps.storeMayBeBehind() ? await deps.provider.find(machineId, signal) : undefined;
    if (found !== undefined) return commit(machine, { hostId: found.hostId, image: "" }, undefined, signal);

    const wanted = { ...machine.object.spec, id: machineId };
    const choose = (fresh?: HostObject) =>
      placeMachine(
        wanted,
        Iterator.from(hosts.values()).map(({ object }) => (object.metadata.id === fresh?.metadata.id ? fresh : object)),
        Iterator.from(machines.values())
          .map(({ object }) => object)
          .toArray(),
      );
    const first = choose();
    if (first.hostId === undefined) throw refusal(wanted.zone, first.reason);
    const host = await hosts.fresh(first.hostId, signal);
    if (host === undefined) throw new Conflict();
    // With the host as it is now, all that was placed on it until now is counted.
    await machines.reached(host.modRevision, 5_000);
    const second = choose(host.object);
    if (second.hostId === undefined) throw refusal(wanted.zone, second.reason);
    if (second.hostId !== first.hostId) throw new Conflict();
    return commit(machine, second, host, signal);
  }

  async function commit(
    machine: Stored<MachineObject>,
    { hostId, image, guestKernel }: Pick<PlaceChoice & { readonly hostId: string }, "hostId" | "image" | "guestKernel">,
    host: Stored<HostObject> | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { metadata, spec } = machine.object;
    const unit = begin();
    const placed = { ...metadata, generation: metadata.generation + 1 };
    unit.update(machineKind, machine, {
      ...machine.object,
      metadata: placed,
      spec: { ...spec, hostId, image: spec.image || image, ...(guestKernel !== undefined && { guestKernel }) },
    });
    if (host !== undefined) unit.update(hostKind, host, withPromise(host.object));
    await machines.reached(await unit.commit(signal), 5_000);
  }

  return {
    place: (machineId, signal) => oneByOne("", () => retryConflict(signal, () => tryPlace(machineId, signal))),
  };
}
