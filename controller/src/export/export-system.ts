import { setTimeout as delay } from "node:timers/promises";
import type { ValuesOf } from "@holdfast/common/config.ts";
import type { Egress } from "@holdfast/egress/create-egress.ts";
import { organizationKind } from "#access/organization/organization.ts";
import type { Quotas } from "#access/organization/quotas.ts";
import type { FleetSystem } from "#fleet/fleet-system.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { System } from "#kernel/system.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import { managedServiceKind } from "#services/service/managed-service.ts";
import type { ServiceAccess } from "#services/service/service-access.ts";
import { exportEventDefinitions } from "./export-events.ts";
import { createExportMemory } from "./export-memory.ts";
import { backlogSeconds } from "./export-plan.ts";
import { createProbe } from "./export-probe.ts";
import { createExportRemoval, createExportUpkeep } from "./export-removal.ts";
import { createRunStates, type RunState } from "./export-run-state.ts";
import { createExportSender } from "./export-sender.ts";
import { exportSettings, vendorUrlsOf } from "./export-settings.ts";
import { createExportShipper } from "./export-shipper.ts";
import { createExportTargets } from "./export-targets.ts";
import { createExportTicker } from "./export-ticker.ts";
import { createLogSource } from "./log-source.ts";
import { destinationTypes, metricsExportKind } from "./metrics-export.ts";
import { createMetricsExportApi } from "./metrics-export-api.ts";
import { createSampleSource, type StoredSamples } from "./sample-source.ts";
import { exportForms } from "./export-forms.ts";

interface ExportSystemDeps {
  readonly fleet: Pick<FleetSystem, "fleet">;
  readonly access: ServiceAccess;
  readonly quotas: Quotas;
  readonly egress: Pick<Egress, "users" | "operators">;
  readonly storedSamples: StoredSamples;
}

/** Metrics and logs of services, pushed to where a team already looks. */
export const exportSystem = declareSystem({
  name: "export",
  settings: exportSettings,
  scopes: { exports: { rights: ["read", "write"], wholeFrom: "developer" } },
  audited: { "holdfast.v1.MetricsExportService": "metrics-export" },
  events: exportEventDefinitions,
  open: openExportSystem,
});

function openExportSystem(kernel: Kernel, deps: ExportSystemDeps, settings: ValuesOf<typeof exportSettings>): System {
  const { collections, history, shards, clock } = kernel;
  const exports = collections.open(metricsExportKind);
  const services = collections.open(managedServiceKind);
  const organizations = collections.open(organizationKind);
  const vendors = vendorUrlsOf(settings);
  const states = createRunStates(history.sql);
  const send = createExportSender({ egress: deps.egress, vendors });
  const all = { ...kernel, ...deps, exports, services, organizations, vendors, states, send };
  const memory = createExportMemory();
  const shipper = createExportShipper({
    ...all,
    memory,
    samples: createSampleSource(deps.storedSamples),
    logs: createLogSource(deps.fleet.fleet),
    wait: (ms, signal) => delay(ms, undefined, { signal }),
  });
  const targetsOf = createExportTargets(all);
  const ready = Promise.all([exports.ready, services.ready]);
  const ticker = createExportTicker({ ...all, shipper, targetsOf, ownership: shards, ready });
  /** What the integrations of this controller come to, by type of destination. */
  const byType = (join: (before: number, state: RunState) => number) => () => {
    const values = new Map<string, number>(destinationTypes.map((type) => [type, 0]));
    for (const [id, { state }] of ticker.working) {
      const type = exports.get(id)?.object.spec.destinationType;
      if (type !== undefined) values.set(type, join(values.get(type) ?? 0, state));
    }
    return { label: "type", values };
  };
  return {
    name: "export",
    forms: exportForms,
    rpcs: [createMetricsExportApi({ ...all, egress: deps.egress.users, probe: createProbe(all) })],
    work: [createExportRemoval(all), createExportUpkeep(all)],
    metrics: [
      { name: "exports", help: "Integrations that this controller exports for", read: byType((count) => count + 1) },
      {
        name: "exports_failing",
        help: "Integrations of this controller whose last tick failed",
        read: byType((count, { consecutiveFailures }) => count + (consecutiveFailures > 0 ? 1 : 0)),
      },
      {
        name: "export_backlog_seconds",
        help: "Age of the oldest thing that an integration of this controller has to send",
        read: byType((oldest, state) => Math.max(oldest, backlogSeconds(state, clock.now()))),
      },
      {
        name: "export_batch_bytes",
        help: "Memory of batches that this controller holds for exports, 64 MiB at most",
        read: () => memory.usedBytes,
      },
    ],
    close: () => ticker.stop(),
  };
}
