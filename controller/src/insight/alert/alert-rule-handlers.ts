import { create } from "@bufbuild/protobuf";
import type { Call, Handlers } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { AlertRuleSchema, type AlertService } from "@holdfast/proto/holdfast/v1/alert_pb.ts";
import { auditOf, commitAndSee } from "#access/caller.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import { requireRoom } from "#kernel/store/quota.ts";
import { newMetadata, type Stored } from "#kernel/store/resource.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { AlertApiDeps } from "./alert-api-deps.ts";
import { resolvedEvent } from "./alert-event.ts";
import { alertRuleMessage } from "./alert-message.ts";
import { alertRuleKind, type AlertRuleObject, defaultNameOf, ruleQuota } from "./alert-rule.ts";
import { touchRuleSet } from "./alert-rule-set.ts";
import { conditionOf, noDataOf, severityOf } from "./alert-words.ts";
import { nameChannel } from "./named-channel.ts";
import { requireMetric } from "./rule-metric.ts";
import { updateRule } from "./update-rule.ts";

type RuleHandlers = Pick<
  Handlers<typeof AlertService>,
  "createAlertRule" | "listAlertRules" | "getAlertRule" | "updateAlertRule" | "deleteAlertRule"
>;

/** Rules of a service, as users make and change them. */
export function createAlertRuleHandlers(deps: AlertApiDeps): RuleHandlers {
  const { rules, rulesOf, ruleSets, channels, access, cursors, clock } = deps;

  function require(serviceId: string, ruleId: string, call: Call): Stored<AlertRuleObject> {
    access.require(serviceId, call);
    const rule = rules.get(ruleId);
    if (rule === undefined || rule.object.spec.serviceId !== serviceId)
      throw new HoldfastError("OBJECT_NOT_FOUND", "The service has no such alert rule.");
    return rule;
  }

  async function shown(service: ManagedServiceObject, rule: AlertRuleObject) {
    return alertRuleMessage(rule, (await deps.outlook(service, [rule])).get(rule.metadata.id));
  }

  return {
    createAlertRule: (request, call) => {
      const { object: service } = access.require(request.serviceId, call);
      requireMetric(request.metric, service);
      const { organizationId } = service.metadata;
      const serviceId = service.metadata.id;
      return retryConflict(call.signal, async () => {
        const known = ruleSets.get(serviceId);
        if (known !== undefined) await rules.reached(known.modRevision, 1_000);
        requireRoom(
          ruleQuota,
          rulesOf.of(serviceId).map(({ object }) => object),
          "The service has",
        );
        const now = clock.now();
        const id = deps.newId();
        const unit = deps.begin();
        const channelId = nameChannel(unit, channels, request.notificationChannelId, call);
        const condition = conditionOf(request.condition);
        const threshold = request.threshold ?? 0;
        const name = request.name ?? defaultNameOf(request.metric, condition, threshold);
        const rule: AlertRuleObject = {
          metadata: newMetadata(id, now, { name, organizationId }),
          spec: {
            serviceId,
            metric: request.metric,
            condition,
            threshold,
            severity: severityOf(request.severity),
            durationMinutes: request.durationMinutes ?? 0,
            channelId,
            noData: noDataOf(request.noData),
            paused: request.paused ?? false,
            since: now,
          },
          status: { fired: null },
        };
        const answer = create(AlertRuleSchema, alertRuleMessage(rule, undefined));
        unit.create(alertRuleKind, rule);
        touchRuleSet(unit, ruleSets, { serviceId, organizationId }, now);
        unit.audit(auditOf(call, "alert-rule.create", "alert-rule", id));
        unit.answer(call, answer);
        await commitAndSee(call, unit, [rules, ruleSets]);
        return answer;
      });
    },

    listAlertRules: async (request, call) => {
      const { object: service } = access.require(request.serviceId, call);
      const { after, limit, next } = cursors.open(call, "alert-rules", request.serviceId, request);
      const behind = rulesOf
        .of(request.serviceId)
        .filter(({ object }) => after === undefined || object.metadata.id > after);
      const page = behind.slice(0, limit).map(({ object }) => object);
      const outlook = await deps.outlook(service, page);
      return {
        rules: page.map((rule) => alertRuleMessage(rule, outlook.get(rule.metadata.id))),
        ...next(behind.length > limit ? page.at(-1)?.metadata.id : undefined),
      };
    },

    getAlertRule: async ({ serviceId, ruleId }, call) => {
      const { object } = require(serviceId, ruleId, call);
      return shown(access.require(serviceId, call).object, object);
    },

    updateAlertRule: (request, call) =>
      retryConflict(call.signal, async () => {
        const before = require(request.serviceId, request.ruleId, call);
        const now = clock.now();
        const { rule, reason } = updateRule(before.object, request, now);
        const answer = create(AlertRuleSchema, alertRuleMessage(rule, undefined));
        const unit = deps.begin();
        if (rule.spec.channelId !== before.object.spec.channelId)
          nameChannel(unit, channels, rule.spec.channelId ?? undefined, call);
        unit.update(alertRuleKind, before, rule);
        const { fired } = before.object.status;
        if (fired !== null && reason !== undefined)
          unit.event(resolvedEvent(before.object, fired, { reason, at: now, value: null }));
        unit.audit(auditOf(call, "alert-rule.update", "alert-rule", request.ruleId));
        unit.answer(call, answer);
        await commitAndSee(call, unit, [rules]);
        return answer;
      }),

    deleteAlertRule: ({ serviceId, ruleId }, call) =>
      retryConflict(call.signal, async () => {
        const before = require(serviceId, ruleId, call);
        const { fired } = before.object.status;
        const unit = deps.begin();
        unit.remove(alertRuleKind, before);
        if (fired !== null)
          unit.event(resolvedEvent(before.object, fired, { reason: "rule_deleted", at: clock.now(), value: null }));
        unit.audit(auditOf(call, "alert-rule.delete", "alert-rule", ruleId));
        await commitAndSee(call, unit, [rules]);
        return {};
      }),
  };
}
