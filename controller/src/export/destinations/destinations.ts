import type { DestinationType } from "../metrics-export.ts";
import { apmPlatform } from "./apm-platform.ts";
import { cloudMonitoring } from "./cloud-monitoring.ts";
import type { Destination } from "./destination.ts";
import { logAggregator } from "./log-aggregator.ts";
import { logSaas } from "./log-saas.ts";
import { otlp } from "./otlp.ts";
import { prometheusRemoteWrite } from "./prometheus-remote-write.ts";
import { searchCluster } from "./search-cluster.ts";

/** All types of destinations. A type of the API without an entry is a compile error. */
export const destinations = {
  apm_platform: apmPlatform,
  prometheus_remote_write: prometheusRemoteWrite,
  otlp,
  search_cluster: searchCluster,
  log_aggregator: logAggregator,
  log_saas: logSaas,
  cloud_monitoring: cloudMonitoring,
} as const satisfies Record<DestinationType, Destination>;

export function destinationOf(type: DestinationType): Destination {
  return destinations[type];
}
