import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { next } from "@holdfast/common/machine.ts";
import type { MachineObject } from "../machine/machine.ts";
import { again, settled } from "../runtime/reconciler.ts";
import type { Reconciled } from "../runtime/runner.ts";
import type { Collection } from "../store/collection.ts";
import type { UnitOfWork } from "../store/unit-of-work.ts";
import type { HostObject } from "./host.ts";
import { planHostDrain } from "./host-drain-plan.ts";
import { hostDrainLifecycle } from "./host-lifecycle.ts";

export interface HostDrainDeps {
  readonly hosts: Collection<HostObject>;
  readonly machines: Collection<MachineObject>;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly log: Log;
}

/** Writes how far each host's drain is. Key: host id. */
export function createHostDrainWork({ hosts, machines, begin, clock, log }: HostDrainDeps): Reconciled {
  return {
    reconciler: {
      name: "host-drain",
      async reconcile(id, signal) {
        const stored = hosts.get(id);
        if (stored === undefined) return settled;
        const here = Iterator.from(machines.values())
          .map(({ object }) => object)
          .filter(({ spec }) => spec.hostId === id)
          .toArray();
        const { event, change } = planHostDrain(stored.object, here);
        const { status } = stored.object;
        const row = event && next(hostDrainLifecycle, status.drain.state, event);
        const moved = row === undefined ? {} : { state: row[2], since: clock.now() };
        const drain = { ...status.drain, ...change, ...moved };
        if (JSON.stringify(drain) === JSON.stringify(status.drain)) return settled;
        const unit = begin();
        unit.update("host", stored, { ...stored.object, status: { ...status, drain } });
        await hosts.reached(await unit.commit(signal), 1_000);
        if (row === undefined) return settled;
        const transition = { host: id, from: row[0], event: row[1], to: row[2], left: drain.left };
        if (row[3] === "warn") log.warn("host drain moved", transition);
        else log.info("host drain moved", transition);
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
          // A machine that is gone does not say where it was.
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
