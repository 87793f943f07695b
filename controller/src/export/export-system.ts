import { setTimeout as delay } from "node:timers/promises";
import { text, type ValuesOf } from "@holdfast/common/config.ts";
import type { SchemaRule } from "@holdfast/gateway/openapi/schema-rules.ts";
import {
  CreateMetricsExportRequestSchema,
  UpdateMetricsExportRequestSchema,
} from "@holdfast/proto/holdfast/v1/metrics_export_pb.ts";
import { organizationKind } from "#access/organization/organization.ts";
import { quotasPart } from "#access/organization/quotas.ts";
import { egressPart } from "#egress-system.ts";
import { fleetPart } from "#fleet/fleet-system.ts";
import { createMonitoredOwners } from "#fleet/owner/monitored-owners.ts";
import { ownerKinds } from "#fleet/owner/owner-kind.ts";
import { dnsRecordKind } from "#fleet/zone/dns-record.ts";
import { storedSamplesPart } from "#fleet/session/sample-sink.ts";
import type { Use } from "#kernel/assembly.ts";
import type { Kernel } from "#kernel/kernel.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import type { System } from "#kernel/system.ts";
import { managedServiceKind } from "#services/service/managed-service.ts";
import { configurationSchema } from "./configuration/configuration-schema.ts";
import type { Destination, VendorUrls } from "./destinations/destination.ts";
import { destinations } from "./destinations/destinations.ts";
import { exportEventDefinitions } from "./export-events.ts";
import { createExportMemory } from "./export-memory.ts";
import { backlogSeconds } from "./export-plan.ts";
import { createExportSender, createProbe } from "./export-sender.ts";
import { createExportRemoval, createRunStateSweep } from "./export-removal.ts";
import { intervalSchema } from "./export-request.ts";
import { createRunStates, type RunState } from "./export-run-state.ts";
import { createExportShipper } from "./export-shipper.ts";
import { createExportTargets } from "./export-targets.ts";
import { createExportTicker } from "./export-ticker.ts";
import { createLogSource } from "./log-source.ts";
import { createMetricsExportApi } from "./metrics-export-api.ts";
import { destinationTypes, metricsExportKind } from "./metrics-export.ts";
import { createOwnServices } from "./own-services.ts";
import { createSampleSource } from "./sample-source.ts";

const exportSettings = {
  apmUrl: text(
    "HOLDFAST_EXPORT_APM_URL",
    "Base URL that replaces the vendor's for exports of type apm_platform, such as that of a proxy",
    "",
  ),
  logSaasUrl: text("HOLDFAST_EXPORT_LOG_SAAS_URL", "URL for exports of type log_saas that name no endpoint", ""),
  cloudUrl: text(
    "HOLDFAST_EXPORT_CLOUD_URL",
    "Base URL that replaces the vendor's for exports of type cloud_monitoring",
    "",
  ),
} as const;

function vendorUrlsOf({ apmUrl, logSaasUrl, cloudUrl }: ValuesOf<typeof exportSettings>): VendorUrls {
  const base = (url: string) => url.replace(/\/+$/, "");
  return { apm: base(apmUrl), logSaas: base(logSaasUrl), cloud: base(cloudUrl) };
}

/**
 * Exports push metrics and logs of services and other owners to monitoring systems of users. The ticker runs each
 * enabled integration of this controller when it is due; a tick reads new samples and log entries behind the
 * integration's cursors, encodes them for its destination type, sends them through the egress client, and then
 * advances the cursors in the history.
 *
 * Concurrency (`export-concurrency.ts`) and memory (`export-memory.ts`) are limited so that unreachable destinations do
 * not delay others. Repeated failures are announced by events, and after seven days the integration is disabled.
 */
export const exportSystem = declareSystem({
  name: "export",
  settings: exportSettings,
  scopes: { exports: { verbs: ["read", "write"], completeFrom: "developer" } },
  audited: { "holdfast.v1.MetricsExportService": "metrics-export" },
  events: exportEventDefinitions,
  open: openExportSystem,
});

function openExportSystem(kernel: Kernel, use: Use, settings: ValuesOf<typeof exportSettings>): System {
  const egress = use(egressPart);
  const { collections, history, shards, clock } = kernel;
  const exports = collections.open(metricsExportKind);
  const owners = createMonitoredOwners(use(ownerKinds));
  const organizations = collections.open(organizationKind);
  const vendors = vendorUrlsOf(settings);
  const states = createRunStates(history.sql);
  const records = collections.open(dnsRecordKind);
  const services = collections.open(managedServiceKind);
  const ownServices = createOwnServices({ services, records, trustBundle: () => kernel.authority.trustBundle });
  const send = createExportSender({ egress, vendors, ownServices });
  const quotas = use(quotasPart);
  const all = { ...kernel, owners, quotas, exports, organizations, vendors, states, send, ownServices };
  const memory = createExportMemory();
  const shipper = createExportShipper({
    ...all,
    memory,
    samples: createSampleSource(use(storedSamplesPart)),
    logs: createLogSource(use(fleetPart).fleet),
    wait: (ms, signal) => delay(ms, undefined, { signal }),
  });
  const targetsOf = createExportTargets(all);
  const ready = Promise.all([exports.ready, owners.ready, records.ready, services.ready]);
  const ticker = createExportTicker({ ...all, shipper, targetsOf, ownership: shards, ready });
  /** A gauge over the integrations of this controller, by destination type. */
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
    schemaRules: exportSchemaRules,
    rpcs: [createMetricsExportApi({ ...all, egress: egress.users, probe: createProbe(all) })],
    work: [createExportRemoval(all), createRunStateSweep(all)],
    metrics: [
      { name: "exports", help: "Integrations that this controller exports", read: byType((count) => count + 1) },
      {
        name: "exports_failing",
        help: "Integrations of this controller whose last tick failed",
        read: byType((count, { consecutiveFailures }) => count + (consecutiveFailures > 0 ? 1 : 0)),
      },
      {
        name: "export_backlog_seconds",
        help: "Age of the oldest item that an integration of this controller has to send",
        read: byType((oldest, state) => Math.max(oldest, backlogSeconds(state, clock.now()))),
      },
      {
        name: "export_batch_bytes",
        help: "Memory of the export batches of this controller, at most 64 MiB",
        read: () => memory.usedBytes,
      },
    ],
    close: () => ticker.stop(),
  };
}

const all: readonly Destination[] = Object.values(destinations);

/** "both" is valid for any destination, which skips the type that it does not support. */
function dataTypesOf({ metrics, logs }: Destination): readonly string[] {
  return [...(metrics === undefined ? [] : ["metrics"]), ...(logs === undefined ? [] : ["logs"]), "both"];
}

/** Restricts the configuration of an integration to the keys of its destination type. */
const exportSchemaRules: readonly SchemaRule[] = [
  [
    CreateMetricsExportRequestSchema,
    {
      oneOf: all.map((destination) => ({
        title: destination.type,
        properties: {
          destination_type: { const: destination.type },
          configuration: configurationSchema(destination, false),
          data_type: { enum: dataTypesOf(destination) },
        },
      })),
    },
  ],
  [
    UpdateMetricsExportRequestSchema.field.configuration,
    { anyOf: all.map((destination) => ({ title: destination.type, ...configurationSchema(destination, true) })) },
  ],
  [CreateMetricsExportRequestSchema.field.exportIntervalSeconds, intervalSchema],
  [UpdateMetricsExportRequestSchema.field.exportIntervalSeconds, intervalSchema],
];
