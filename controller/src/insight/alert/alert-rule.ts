import { closestName } from "@holdfast/common/engine-catalog/closest-name.ts";
import { type FieldFault, HoldfastError } from "@holdfast/common/errors.ts";
import { appliesToEngine, metricCatalog, metricOf } from "@holdfast/common/metric-catalog.ts";
import {
  isInPlannedWork,
  type MonitoredMachine,
  type MonitoredOwner,
  type Monitoring,
} from "#fleet/owner/monitored-owner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { defineKind } from "#kernel/store/kind.ts";
import type { Quota } from "#kernel/store/quota.ts";
import { newMetadata, nextMetadata, type Resource, type Stored } from "#kernel/store/resource.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";

/** An alert rule watches one metric of one owner of machines, such as a service. Names of rules need not be unique. */
export type AlertRuleObject = Resource<AlertRuleSpec, AlertRuleStatus>;

/** Quota of rules per service. */
export const ruleQuota: Quota<AlertRuleObject> = {
  name: "alertRules",
  label: "alert rules",
  limit: 50,
  ownerOf: serviceOfRule,
};

export const alertRuleKind = defineKind<AlertRuleObject>("alert-rule", {
  deletedWithOrganization: true,
  indexes: [serviceOfRule],
  quotas: [ruleQuota],
});

/** Index of rules by service, or by another owner. */
function serviceOfRule({ spec }: AlertRuleObject): string {
  return spec.serviceId;
}

/** Kind of the owner of a rule without `ownerKind`, which is how rules of services are stored. */
const serviceKind = "managed-service";

export type AlertCondition = "gt" | "lt";
export type AlertSeverity = "info" | "warning" | "critical";

export interface AlertRuleSpec {
  /** Id of the owner. */
  readonly serviceId: string;
  /** Kind of the owner; absent: a service. */
  readonly ownerKind?: string;
  readonly metric: string;
  readonly condition: AlertCondition;
  readonly threshold: number;
  readonly severity: AlertSeverity;
  readonly durationMinutes: number;
  /** Null: the default channel of the organization. */
  readonly channelId: string | null;
  readonly noData: "ignore" | "fire";
  readonly paused: boolean;
  /**
   * Time of the creation, or of the last change of the condition, in milliseconds since 1970. Older samples are
   * ignored.
   */
  readonly since: number;
}

/** The kind of the rule's owner. */
export function ownerKindOf({ ownerKind = serviceKind }: Pick<AlertRuleSpec, "ownerKind">): string {
  return ownerKind;
}

/** The field of a new rule for its owner's kind. */
export function ownerField({ owner: { kind } }: MonitoredOwner): Pick<AlertRuleSpec, "ownerKind"> {
  return kind === serviceKind ? {} : { ownerKind: kind };
}

export interface AlertRuleStatus {
  /** The current alert; null unless the rule fires. */
  readonly fired: FiredAlert | null;
}

/** An alert: its rule fired, and it is not resolved yet. */
export interface FiredAlert {
  /** Id of the alert, the same in `alert.fired` and `alert.resolved`. */
  readonly id: string;
  readonly state: "firing" | "no_data";
  readonly nodeId: string | null;
  /** Value of the sample that fired the rule; null for `no_data`. */
  readonly value: number | null;
  /** Start of the time for which the condition was true, or data were missing. Milliseconds since 1970. */
  readonly since: number;
  readonly firedAt: number;
  /** Id of the channel that got the alert; null if the rule and the organization had none. */
  readonly channelId: string | null;
  readonly serviceName: string;
}

/** Reason why an alert is resolved. */
export type ResolvedReason =
  | "condition_false"
  | "rule_changed"
  | "rule_paused"
  | "rule_deleted"
  | `${string}_stopped`
  | `${string}_deleted`;

/** The parameters of a rule that decide its state. */
export interface RuleParameters {
  readonly condition: AlertCondition;
  readonly threshold: number;
  readonly durationMs: number;
  readonly noData: "ignore" | "fire";
  /** Time before which samples are ignored, in milliseconds since 1970. */
  readonly sinceMs: number;
}

/**
 * The rule set of one service; its id is the service's id. Every creation of a rule raises its revision, which
 * serializes creations for the quota.
 */
export type AlertRuleSetObject = Resource<AlertRuleSetSpec, object>;

export const alertRuleSetKind = defineKind<AlertRuleSetObject>("alert-rule-set", {
  deletedWithOrganization: true,
  storedNames: { "spec.createdDefaults": "defaultsMade" },
});

export interface AlertRuleSetSpec {
  /** Metrics whose default rule was created: each is created once, and not again after a user deletes it. */
  readonly createdDefaults: readonly string[];
}

/** Alert settings of an organization; the object's id is the organization's. */
export type AlertSettingsObject = Resource<{ readonly defaultChannelId: string | null }, object>;

export const alertSettingsKind = defineKind<AlertSettingsObject>("alert-settings", { deletedWithOrganization: true });

export type StoredRule = Stored<AlertRuleObject>;

/** The name of a rule that was created without one, such as `disk gt 90`. */
export function defaultNameOf(metric: string, condition: AlertCondition, threshold: number): string {
  return `${metric} ${condition} ${threshold}`;
}

/** The alert rules by service. */
export interface RulesByService {
  /** The rules of a service in the order of ids, which is the order of their creation. */
  of(serviceId: string): StoredRule[];
  /** Ids of the services that have rules. */
  services(): IterableIterator<string>;
}

export function createRulesByService(rules: Pick<Collection<AlertRuleObject>, "by" | "keysOf">): RulesByService {
  return {
    of: (serviceId) => rules.by(serviceOfRule, serviceId),
    services: () => rules.keysOf(serviceOfRule),
  };
}

const minuteMs = 60_000;
/** Additional time range that is read, because samples are not taken at the exact start of a rule's duration. */
const marginMs = 5 * minuteMs;

/** The parameters of a rule. Samples from before the owner's last start do not count. */
export function parametersOf({ spec }: AlertRuleObject, { startedAt }: MonitoredOwner): RuleParameters {
  return {
    condition: spec.condition,
    threshold: spec.threshold,
    durationMs: spec.durationMinutes * minuteMs,
    noData: spec.noData,
    sinceMs: Math.max(spec.since, startedAt),
  };
}

/** Time range of samples that the evaluation needs. */
export function lookBackMs({ spec }: AlertRuleObject): number {
  return spec.durationMinutes * minuteMs + marginMs;
}

/** Slot of the rule's metric in samples; undefined for a metric that this version lacks. */
export function metricNumberOf({ spec }: AlertRuleObject): number | undefined {
  return metricOf(spec.metric)?.number;
}

/** The errors of a metric's name, for validation: empty if the catalog has it. */
export function faultsOfMetric(name: string): readonly FieldFault[] {
  if (name === "" || metricOf(name) !== undefined) return [];
  const closest = closestName(
    name,
    metricCatalog.map((metric) => metric.name),
  );
  const hint = closest === undefined ? "GET /catalog lists all metrics" : `did you mean ${closest}?`;
  return [{ field: "metric", pointer: "/metric", code: "unknown_metric", detail: `${name} is not a metric: ${hint}` }];
}

/** Throws NOT_SUPPORTED if the metric belongs to other engines. */
export function requireMetric(name: string, { noun, software }: MonitoredOwner): void {
  const metric = metricOf(name);
  if (metric === undefined || appliesToEngine(metric, software)) return;
  const detail = `${name} is a metric of ${metric.engines.join(", ")}; this ${noun} is ${software}.`;
  throw new HoldfastError("NOT_SUPPORTED", detail);
}

/** The reason why an owner's rules are not evaluated; undefined while they are. */
export function suspensionReason({ noun, suspension }: MonitoredOwner): ResolvedReason | undefined {
  return suspension && `${noun}_${suspension}`;
}

/** The machines that can have the metric in their current role: samples of a former role do not count. */
function machinesOfMetric({ machines }: MonitoredOwner, metric: string): readonly MonitoredMachine[] {
  const nodes = metricOf(metric)?.nodes;
  if (nodes === undefined) return machines;
  return machines.filter(({ role }) => (role === "primary") === (nodes === "primary"));
}

/**
 * The machines whose samples decide a rule now. Planned work on a machine explains its health, so until a rule fires
 * these samples do not count.
 */
export function machinesOfRule(
  owner: MonitoredOwner,
  { spec, status }: AlertRuleObject,
  now: number,
): readonly MonitoredMachine[] {
  const machines = machinesOfMetric(owner, spec.metric);
  if (spec.metric !== healthMetric || status.fired !== null) return machines;
  return machines.filter((machine) => !isInPlannedWork(machine, now));
}

/** The metric of a machine's own checks. */
const healthMetric = "health";

type DefaultRule = Pick<
  AlertRuleSpec,
  "metric" | "condition" | "threshold" | "severity" | "durationMinutes" | "noData"
>;

/** The default rules of new owners. */
// biome-ignore format: a table, aligned so that it reads as one
const defaultRuleTable: readonly DefaultRule[] = [
  { metric: "disk",                    condition: "gt", threshold: 90,  severity: "warning",  durationMinutes: 5, noData: "ignore" },
  { metric: "health",                  condition: "gt", threshold: 1,   severity: "critical", durationMinutes: 2, noData: "fire" },
  { metric: "restorable_age_seconds",  condition: "gt", threshold: 900, severity: "critical", durationMinutes: 5, noData: "ignore" },
  { metric: "replication_lag_seconds", condition: "gt", threshold: 300, severity: "warning",  durationMinutes: 5, noData: "ignore" },
];

/** The default rules of an owner, for the metrics of its software. The rule of replication lag needs replicas. */
export function defaultRulesOf(
  { machines, software }: Pick<MonitoredOwner, "machines" | "software">,
  { defaultRules }: Pick<Monitoring, "defaultRules">,
): readonly DefaultRule[] {
  return defaultRuleTable.filter(({ metric }) => {
    const catalogMetric = metricOf(metric);
    if (!defaultRules.includes(metric) || (metric === "replication_lag_seconds" && machines.length < 2)) return false;
    return catalogMetric !== undefined && catalogMetric.source !== null && appliesToEngine(catalogMetric, software);
  });
}

/**
 * Raises the revision of the service's rule set, so that one of two concurrent creations gets a Conflict and counts the
 * quota again. `createdDefaults`: default rules that the same transaction creates.
 */
export function touchRuleSet(
  unit: Changes,
  ruleSets: Pick<Collection<AlertRuleSetObject>, "get">,
  { serviceId, organizationId }: { readonly serviceId: string; readonly organizationId: string },
  now: number,
  createdDefaults: readonly string[] = [],
): void {
  const before = ruleSets.get(serviceId);
  if (before === undefined) {
    const metadata = newMetadata(serviceId, now, { organizationId });
    unit.create(alertRuleSetKind, { metadata, spec: { createdDefaults }, status: {} });
    return;
  }
  const { metadata, spec } = before.object;
  unit.update(alertRuleSetKind, before, {
    ...before.object,
    metadata: nextMetadata(metadata, now),
    spec: { ...spec, createdDefaults: [...new Set([...spec.createdDefaults, ...createdDefaults])] },
  });
}
