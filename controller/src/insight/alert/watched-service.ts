import { metricOf } from "@holdfast/common/metric-catalog.ts";
import { isPrimary, isStaying } from "#services/service/member/members.ts";
import type { ManagedServiceObject, NodeSpec } from "#services/service/managed-service.ts";
import type { ResolvedReason } from "./alert-event.ts";

/** Why a service's rules are at rest; undefined while they are evaluated. */
export function restReason({ metadata, spec }: ManagedServiceObject): ResolvedReason | undefined {
  if (metadata.deletionRequestedAt !== undefined) return "service_deleted";
  return spec.power === "off" ? "service_stopped" : undefined;
}

/** Nodes whose silence is an alert: not those that are made, replaced or removed. */
export function nodesToTell({ spec, status }: ManagedServiceObject): readonly NodeSpec[] {
  if (spec.power === "off" || (status.state !== "Running" && status.state !== "Error")) return [];
  return spec.nodes.filter(isStaying);
}

/** Nodes that can have the metric by their role of now: what another one told while it had that role counts no more. */
export function nodesOfMetric(service: ManagedServiceObject, metric: string): readonly NodeSpec[] {
  const tells = metricOf(metric)?.nodes;
  if (tells === undefined) return service.spec.nodes;
  return service.spec.nodes.filter((node) => isPrimary(service, node) === (tells === "primary"));
}
