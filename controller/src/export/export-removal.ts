import type { MonitoredOwners } from "#fleet/owner/monitored-owners.ts";
import { createPeriodic } from "#kernel/runtime/periodic.ts";
import { again, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { RunStates } from "./export-run-state.ts";
import { exportsOfService, metricsExportKind, type MetricsExportObject, scopeName } from "./metrics-export.ts";

interface Deps {
  readonly exports: Collection<MetricsExportObject>;
  readonly owners: Pick<MonitoredOwners, "get" | "exists" | "subscribe">;
  readonly states: Pick<RunStates, "ids" | "forget">;
  readonly begin: () => UnitOfWork;
}

const hourMs = 3_600_000;

/** Deletes the integrations of deleted owners. Key: id of an owner. */
export function createExportRemoval({ exports, owners, begin }: Deps): ControlLoop {
  return {
    reconciler: {
      name: "export-removal",
      async reconcile(serviceId, signal) {
        if (owners.get(serviceId) !== undefined) return settled;
        // The collection of owners may lag behind that of integrations: ask the store before anything is removed.
        if (await owners.exists(serviceId, signal)) return again(1_000, "the owner exists");
        const remaining = exports.by(exportsOfService, serviceId);
        if (remaining.length === 0) return settled;
        const unit = begin();
        for (const stored of remaining) {
          const { metadata, spec } = stored.object;
          unit.remove(metricsExportKind, stored);
          unit.releaseName(metricsExportKind, metadata.organizationId, scopeName(spec));
        }
        await exports.untilRevision(await unit.commit(signal), 1_000);
        return settled;
      },
    },
    *keys() {
      for (const id of exports.keysOf(exportsOfService)) if (owners.get(id) === undefined) yield id;
    },
    subscribe: owners.subscribe,
  };
}

/** Deletes the run states of deleted integrations from the history. */
export function createRunStateSweep({ exports, states }: Pick<Deps, "exports" | "states">): ControlLoop {
  return createPeriodic("run-state-sweep", hourMs, async (signal) => {
    const deleted: string[] = [];
    for (const id of await states.ids())
      if (exports.get(id) === undefined && (await exports.getCurrent(id, signal)) === undefined) deleted.push(id);
    await states.forget(deleted);
  });
}
