import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { next } from "@holdfast/common/machine.ts";
import { hostOfMachine, type MachineObject } from "../machine/machine.ts";
import { again, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { hostKind, type HostObject } from "./host.ts";
import type { MachineOwner } from "../owner/owner-kind.ts";
import type { Owners } from "../owner/owners.ts";
import { planHostDrain } from "./host-drain-plan.ts";
import { hostDrainLifecycle } from "./host-lifecycle.ts";

export interface HostDrainDeps {
  readonly hosts: Collection<HostObject>;
  readonly machines: Collection<MachineObject>;
  readonly owners: Owners;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Returns a predicate that is true for owners with more than one machine. Machines are counted only while the host is
 * being drained.
 */
function hasSeveralMachines({ spec }: HostObject, machines: Collection<MachineObject>) {
  const keyOf = ({ kind, id }: MachineOwner) => `${kind}/${id}`;
  const seen = new Set<string>();
  const several = new Set<string>();
  for (const { object } of spec.drain === null ? [] : machines.values()) {
    const { owner } = object.spec;
    if (owner !== null) (seen.has(keyOf(owner)) ? several : seen).add(keyOf(owner));
  }
  return (owner: MachineOwner) => several.has(keyOf(owner));
}

/** Writes the progress of each host's drain. Key: host id. */
export function createHostDrainWork({ hosts, machines, owners, begin, clock, log }: HostDrainDeps): ControlLoop {
  return {
    reconciler: {
      name: "host-drain",
      async reconcile(id, signal) {
        const stored = hosts.get(id);
        if (stored === undefined) return settled;
        const hostMachines = machines.by(hostOfMachine, id).map(({ object }) => object);
        const hasOthers = hasSeveralMachines(stored.object, machines);
        const { event, change } = planHostDrain(stored.object, hostMachines, hasOthers, owners);
        const { status } = stored.object;
        const row = event && next(hostDrainLifecycle, status.drain.state, event);
        const stateChange = row === undefined ? {} : { state: row[2], since: clock.now() };
        const drain = { ...status.drain, ...change, ...stateChange };
        if (JSON.stringify(drain) === JSON.stringify(status.drain)) return settled;
        const unit = begin();
        unit.update(hostKind, stored, { ...stored.object, status: { ...status, drain } });
        await hosts.untilRevision(await unit.commit(signal), 1_000);
        if (row === undefined) return settled;
        const transition = { host: id, from: row[0], event: row[1], to: row[2], left: drain.remaining };
        if (row[3] === "warn") log.warn("host drain changed", transition);
        else log.info("host drain changed", transition);
        return again(0, row[1]);
      },
    },
    *keys() {
      for (const { object } of hosts.values()) yield object.metadata.id;
    },
    subscribe(onChange) {
      const watches = [
        hosts.subscribe(onChange),
        machines.subscribe((machineId) => {
          const hostId = machines.get(machineId)?.object.spec.hostId;
          // The host of a deleted machine is unknown, so all hosts with a drain are checked.
          for (const { object } of hosts.values())
            if (object.spec.drain !== null && (hostId ?? object.metadata.id) === object.metadata.id)
              onChange(object.metadata.id);
        }),
      ];
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },
  };
}
