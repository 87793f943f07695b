import type { Clock } from "@holdfast/common/clock.ts";
import { ComputeFailure, ComputePending } from "@holdfast/compute/compute-failure.ts";
import type { HostsProvider } from "@holdfast/compute/router/hosts-provider.ts";
import type { MachinePlacement } from "../machine/machine-steps.ts";
import { machineKind, type MachineObject } from "../machine/machine.ts";
import { createKeyedMutex } from "@holdfast/common/concurrency/mutex.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import { Conflict, type UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { hostKind, type HostObject, withReservation } from "../host/host.ts";
import { type PlacementChoice, placeMachine } from "./place-machine.ts";

export interface MachinePlacementDeps {
  readonly hosts: Collection<HostObject>;
  readonly machines: Collection<MachineObject>;
  readonly provider: Pick<HostsProvider, "find">;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  /** True while the store may be older than the hosts' state, after a restore. */
  readonly storeMayBeBehind: () => boolean;
}

/** Time that a new host has to connect, such as at the first start of the platform. Until then machines wait for it. */
const joinTimeoutMs = 60_000;

function isJoining({ status, spec }: HostObject, now: number): boolean {
  return status.state === "joining" && spec.destroyedAt === null && now - status.since < joinTimeoutMs;
}

/**
 * Places machines (`place-machine.ts` chooses). Every placement also changes its host's object, so of two concurrent
 * placements on one host, at any controllers, one gets a Conflict and chooses again, and counts the other machine. A
 * host that is cordoned or removed during the placement causes a Conflict as well.
 */
export function createMachinePlacement(deps: MachinePlacementDeps): MachinePlacement {
  const { hosts, machines, begin, clock } = deps;
  // Placements of one controller would only conflict with each other.
  const exclusive = createKeyedMutex();

  function refusal(zone: string, reason: string): Error {
    const joining = Iterator.from(hosts.values()).find(
      ({ object }) => object.spec.zone === zone && isJoining(object, clock.now()),
    );
    return joining === undefined
      ? new ComputeFailure(reason)
      : new ComputePending(
          `Host ${joining.object.metadata.id} is joining; the machine is placed once the host has connected.`,
        );
  }

  async function tryPlace(machineId: string, signal: AbortSignal): Promise<void> {
    const machine = await machines.getCurrent(machineId, signal);
    if (machine === undefined || machine.object.spec.hostId !== null) return;
    // After a restore of the store the machine may exist already: it remains on its host.
    const found = deps.storeMayBeBehind() ? await deps.provider.find(machineId, signal) : undefined;
    if (found !== undefined) return commit(machine, { hostId: found.hostId, image: "" }, undefined, signal);

    const request = { ...machine.object.spec, id: machineId };
    const choose = (current?: HostObject) =>
      placeMachine(
        request,
        Iterator.from(hosts.values()).map(({ object }) =>
          object.metadata.id === current?.metadata.id ? current : object,
        ),
        Iterator.from(machines.values())
          .map(({ object }) => object)
          .toArray(),
      );
    const first = choose();
    if (first.hostId === undefined) throw refusal(request.zone, first.reason);
    const host = await hosts.getCurrent(first.hostId, signal);
    if (host === undefined) throw new Conflict();
    // Every placement changes the host's object, so a cache of this revision has all machines that were placed before.
    await machines.untilRevision(host.modRevision, 5_000);
    const second = choose(host.object);
    if (second.hostId === undefined) throw refusal(request.zone, second.reason);
    if (second.hostId !== first.hostId) throw new Conflict();
    return commit(machine, second, host, signal);
  }

  async function commit(
    machine: Stored<MachineObject>,
    {
      hostId,
      image,
      guestKernel,
    }: Pick<PlacementChoice & { readonly hostId: string }, "hostId" | "image" | "guestKernel">,
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
    if (host !== undefined) unit.update(hostKind, host, withReservation(host.object));
    await machines.untilRevision(await unit.commit(signal), 5_000);
  }

  return {
    place: (machineId, signal) => exclusive("", () => retryConflict(signal, () => tryPlace(machineId, signal))),
  };
}
