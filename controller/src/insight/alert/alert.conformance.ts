import {
  AlertService,
  type CreateAlertRuleRequestSchema,
  type UpdateAlertRuleRequestSchema,
} from "@holdfast/proto/holdfast/v1/alert_pb.ts";
import { casesOf, type Contract, objectScoped, ofCaller, ofService } from "@holdfast/testing/contract/contract.ts";
import { page, type SameInput, sameInputs, type sdk, sdkCalls, time } from "@holdfast/testing/contract/sdk-calls.ts";

declare module "@holdfast/testing/contract/contract.ts" {
  interface Existing {
    readonly ruleId: string;
  }
}

const alertRule = objectScoped(({ serviceId, ruleId }) => ({ service_id: serviceId, rule_id: ruleId }));
const alertChange = {
  name: "n",
  condition: "gt",
  threshold: 1,
  severity: "info",
  duration_minutes: 1,
  notification_channel_id: null,
  no_data: "fire",
  paused: true,
} as const;
const newRule = { metric: "cpu", ...alertChange } as const;

export default {
  authorization: [
    casesOf(AlertService, {
      createAlertRule: objectScoped(({ serviceId }) => ({
        service_id: serviceId,
        metric: "cpu",
        condition: "gt",
        threshold: 1,
      })),
      listAlertRules: ofService,
      getAlertRule: alertRule,
      updateAlertRule: objectScoped(({ serviceId, ruleId }) => ({
        service_id: serviceId,
        rule_id: ruleId,
        paused: true,
      })),
      deleteAlertRule: alertRule,
      listAlertEvents: ofService,
      listFiringAlerts: ofCaller,
      getDefaultChannel: ofCaller,
      setDefaultChannel: objectScoped(({ channelId }) => ({ channel_id: channelId })),
    }),
  ],
  existing: async ({ make, existing }) => {
    const rule = { metric: "cpu", condition: "gt", threshold: 101 };
    return { ruleId: (await make(`/managed-services/${existing.serviceId}/alerts/rules`, rule)).id };
  },
  sdk: [
    sdkCalls(AlertService, {
      createAlertRule: (c) => c.alerts.createRule("i", newRule),
      listAlertRules: (c) => c.alerts.rules("i", page),
      getAlertRule: (c) => c.alerts.getRule("i", "r"),
      updateAlertRule: (c) => c.alerts.updateRule("i", "r", alertChange),
      deleteAlertRule: (c) => c.alerts.deleteRule("i", "r"),
      listAlertEvents: (c) => c.alerts.events("i", { since: time }, page),
      listFiringAlerts: (c) => c.alerts.firing(page),
      getDefaultChannel: (c) => c.alerts.defaultChannel(),
      setDefaultChannel: (c) => c.alerts.setDefaultChannel(null),
    }),
  ],
  sdkInputs: sameInputs<{
    newAlertRule: SameInput<sdk.NewAlertRule, typeof CreateAlertRuleRequestSchema>;
    alertRuleChange: SameInput<sdk.AlertRuleChange, typeof UpdateAlertRuleRequestSchema>;
  }>(),
  kindBounds: {
    "alert-rule-set": "one a service",
    "alert-settings": "one an organization",
  },
} satisfies Contract;
