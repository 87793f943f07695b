import type { Quota } from "#kernel/store/quota.ts";
import { defineKind } from "#kernel/store/kind.ts";
import type { Resource, Stored } from "#kernel/store/resource.ts";

/** A rule that watches one metric of one service. Its name need not be unique. */
export type AlertRuleObject = Resource<AlertRuleSpec, AlertRuleStatus>;

/** Of one service. */
export const ruleQuota: Quota<AlertRuleObject> = {
  name: "alertRules",
  words: "alert rules",
  limit: 50,
  ownerOf: serviceOfRule,
};

export const alertRuleKind = defineKind<AlertRuleObject>("alert-rule", {
  goesWithOrganization: true,
  indexes: [serviceOfRule],
  quotas: [ruleQuota],
});

/** Index: the rules of one service. */
export function serviceOfRule({ spec }: AlertRuleObject): string {
  return spec.serviceId;
}

export type AlertCondition = "gt" | "lt";
export type AlertSeverity = "info" | "warning" | "critical";

export interface AlertRuleSpec {
  readonly serviceId: string;
  readonly metric: string;
  readonly condition: AlertCondition;
  readonly threshold: number;
  readonly severity: AlertSeverity;
  readonly durationMinutes: number;
  /** Null: the organization's default channel. */
  readonly channelId: string | null;
  readonly noData: "ignore" | "fire";
  readonly paused: boolean;
  /** Samples from before do not count: when the rule was made or what it asks was changed. */
  readonly since: number;
}

export interface AlertRuleStatus {
  /** Null unless the rule fires. */
  readonly fired: FiredAlert | null;
}

/** One time that a rule fired. */
export interface FiredAlert {
  /** Of the alert: the same when it is resolved. */
  readonly id: string;
  readonly state: "firing" | "no_data";
  readonly nodeId: string | null;
  /** The value that fired; null without data. */
  readonly value: number | null;
  /** Since when the condition held, or there were no data. */
  readonly since: number;
  readonly firedAt: number;
  /** The channel that was told; null when there was none. */
  readonly channelId: string | null;
  readonly serviceName: string;
}

/** What there is of rules of one service; raised whenever one is made, so that they are counted right. */
export type AlertRuleSetObject = Resource<AlertRuleSetSpec, object>;

export const alertRuleSetKind = defineKind<AlertRuleSetObject>("alert-rule-set", { goesWithOrganization: true });

export interface AlertRuleSetSpec {
  /** Names of default rules that were made: each is made once, and stays away when it is deleted. */
  readonly defaultsMade: readonly string[];
}

/** What an organization's rules have in common; its id is the organization's. */
export type AlertSettingsObject = Resource<{ readonly defaultChannelId: string | null }, object>;

export const alertSettingsKind = defineKind<AlertSettingsObject>("alert-settings", { goesWithOrganization: true });

export type StoredRule = Stored<AlertRuleObject>;

/** What a rule is called unless its maker says. */
export function defaultNameOf(metric: string, condition: AlertCondition, threshold: number): string {
  return `${metric} ${condition} ${threshold}`;
}
