import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type Call, type Handlers, serve, type ServedService } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { AlertRuleSchema, AlertService, DefaultChannelSchema } from "@holdfast/proto/holdfast/v1/alert_pb.ts";
import { organizationOf, requireUnlimited } from "#access/caller.ts";
import { mutate } from "#access/mutate.ts";
import type { MonitoredOwner } from "#fleet/owner/monitored-owner.ts";
import type { MonitoredOwners } from "#fleet/owner/monitored-owners.ts";
import type { History } from "#kernel/history/history.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { requireCapacity } from "#kernel/store/quota.ts";
import { newMetadata, nextMetadata, type Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { ChannelObject } from "#notify/channel/channel.ts";
import { eventMessage } from "../event/event-api.ts";
import { createOwnerCheck } from "../event/owner-check.ts";
import { resolvedEvent } from "./alert-event.ts";
import { alertRuleMessage, conditionOf, firingAlertMessage, noDataOf, severityOf } from "./alert-message.ts";
import {
  alertRuleKind,
  type AlertRuleObject,
  type AlertRuleSetObject,
  alertSettingsKind,
  type AlertSettingsObject,
  defaultNameOf,
  faultsOfMetric,
  ownerField,
  ownerKindOf,
  requireMetric,
  ruleQuota,
  type RulesByService,
  touchRuleSet,
} from "./alert-rule.ts";
import { referenceChannel } from "./rule-channels.ts";
import type { EvaluateRules } from "./rule-evaluations.ts";
import { updateRule } from "./update-rule.ts";

export interface AlertApiDeps {
  readonly begin: () => UnitOfWork;
  readonly rules: Collection<AlertRuleObject>;
  readonly rulesByService: RulesByService;
  readonly ruleSets: Collection<AlertRuleSetObject>;
  readonly alertSettings: Collection<AlertSettingsObject>;
  readonly channels: Pick<Collection<ChannelObject>, "get">;
  readonly evaluateRules: EvaluateRules;
  readonly history: Pick<History, "events">;
  readonly owners: MonitoredOwners;
  readonly cursors: Cursors;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** The RPCs of AlertService: alert rules, alerts, and the default channel. */
export function createAlertApi(deps: AlertApiDeps): ServedService {
  const handlers = {
    ...createAlertRuleHandlers(deps),
    ...createAlertListHandlers(deps),
    ...createDefaultChannelHandlers(deps),
  };
  return serve(AlertService, handlers, { createAlertRule: ({ metric }) => faultsOfMetric(metric) });
}

type RuleHandlers = Pick<
  Handlers<typeof AlertService>,
  "createAlertRule" | "listAlertRules" | "getAlertRule" | "updateAlertRule" | "deleteAlertRule"
>;

/** The RPCs that create, list, change and delete the rules of an owner. */
function createAlertRuleHandlers(deps: AlertApiDeps): RuleHandlers {
  const { rules, rulesByService, ruleSets, channels, owners, cursors, clock } = deps;

  function require(serviceId: string, ruleId: string, call: Call): Stored<AlertRuleObject> {
    const { noun } = owners.require(serviceId, call);
    const rule = rules.get(ruleId);
    if (rule === undefined || rule.object.spec.serviceId !== serviceId)
      throw new HoldfastError("OBJECT_NOT_FOUND", `The ${noun} has no such alert rule.`);
    return rule;
  }

  async function message(owner: MonitoredOwner, rule: AlertRuleObject) {
    return alertRuleMessage(rule, (await deps.evaluateRules(owner, [rule])).get(rule.metadata.id));
  }

  return {
    createAlertRule: (request, call) => {
      const owner = owners.require(request.serviceId, call);
      requireMetric(request.metric, owner);
      const { serviceId } = request;
      const { organizationId } = owner;
      const mutation = { action: "alert-rule.create", kind: "alert-rule", visibleIn: [rules, ruleSets] } as const;
      return mutate(deps, call, mutation, async (unit) => {
        const ruleSet = ruleSets.get(serviceId);
        if (ruleSet !== undefined) await rules.untilRevision(ruleSet.modRevision, 1_000);
        requireCapacity(
          ruleQuota,
          rulesByService.of(serviceId).map(({ object }) => object),
          `The ${owner.noun} has`,
        );
        const now = clock.now();
        const id = deps.newId();
        const channelId = referenceChannel(unit, channels, request.notificationChannelId, call);
        const condition = conditionOf(request.condition);
        const threshold = request.threshold ?? 0;
        const name = request.name ?? defaultNameOf(request.metric, condition, threshold);
        const rule: AlertRuleObject = {
          metadata: newMetadata(id, now, { name, organizationId }),
          spec: {
            serviceId,
            ...ownerField(owner),
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
        const response = create(AlertRuleSchema, alertRuleMessage(rule, undefined));
        unit.create(alertRuleKind, rule);
        touchRuleSet(unit, ruleSets, { serviceId, organizationId }, now);
        return { id, response };
      });
    },

    listAlertRules: async (request, call) => {
      const owner = owners.require(request.serviceId, call);
      const { after, limit, next } = cursors.open(call, "alert-rules", request.serviceId, request);
      const following = rulesByService
        .of(request.serviceId)
        .filter(({ object }) => after === undefined || object.metadata.id > after);
      const page = following.slice(0, limit).map(({ object }) => object);
      const evaluations = await deps.evaluateRules(owner, page);
      return {
        rules: page.map((rule) => alertRuleMessage(rule, evaluations.get(rule.metadata.id))),
        ...next(following.length > limit ? page.at(-1)?.metadata.id : undefined),
      };
    },

    getAlertRule: async ({ serviceId, ruleId }, call) => {
      const { object } = require(serviceId, ruleId, call);
      return message(owners.require(serviceId, call), object);
    },

    updateAlertRule: (request, call) =>
      mutate(deps, call, { action: "alert-rule.update", kind: "alert-rule", visibleIn: [rules] }, async (unit) => {
        const before = require(request.serviceId, request.ruleId, call);
        const now = clock.now();
        const { rule, reason } = updateRule(before.object, request, now);
        const response = create(AlertRuleSchema, alertRuleMessage(rule, undefined));
        if (rule.spec.channelId !== before.object.spec.channelId)
          referenceChannel(unit, channels, rule.spec.channelId ?? undefined, call);
        unit.update(alertRuleKind, before, rule);
        const { fired } = before.object.status;
        if (fired !== null && reason !== undefined)
          unit.event(resolvedEvent(before.object, fired, { reason, at: now, value: null }));
        return { id: request.ruleId, response };
      }),

    deleteAlertRule: ({ serviceId, ruleId }, call) =>
      mutate(deps, call, { action: "alert-rule.delete", kind: "alert-rule", visibleIn: [rules] }, async (unit) => {
        const before = require(serviceId, ruleId, call);
        const { fired } = before.object.status;
        unit.remove(alertRuleKind, before);
        if (fired !== null)
          unit.event(resolvedEvent(before.object, fired, { reason: "rule_deleted", at: clock.now(), value: null }));
        return { id: ruleId, result: {} };
      }),
  };
}

/** The event types of alert rules. */
const alertEventTypes = ["alert.fired", "alert.resolved"] as const;

/** The RPCs that list alerts: past events, and current alerts. */
function createAlertListHandlers(
  deps: AlertApiDeps,
): Pick<Handlers<typeof AlertService>, "listAlertEvents" | "listFiringAlerts"> {
  const { rules, owners, cursors } = deps;
  const requireOwner = createOwnerCheck(deps);

  return {
    listAlertEvents: async (request, call) => {
      await requireOwner(request.serviceId, call);
      const filter = { organizationId: organizationOf(call), objectId: request.serviceId, types: alertEventTypes };
      const { after, limit, cursorAt } = cursors.open(call, "alert-events", request.serviceId, request);
      const since = request.since === undefined ? {} : { since: timestampMs(request.since) };
      const page = await deps.history.events({ ...filter, ...since }, { after, limit, order: "oldest first" });
      return {
        events: page.items.map(eventMessage),
        nextCursor: cursorAt(page.next ?? "0"),
        hasMore: page.more,
      };
    },

    listFiringAlerts: async (request, call) => {
      const page = { ...cursors.open(call, "firing-alerts", null, request), organizationId: organizationOf(call) };
      const { items, next } = rules.page(
        ({ spec, status }) =>
          status.fired !== null && owners.mayRead({ kind: ownerKindOf(spec), id: spec.serviceId }, call),
        page,
      );
      return {
        alerts: items.flatMap(({ object }) =>
          object.status.fired === null ? [] : firingAlertMessage(object, object.status.fired),
        ),
        ...page.next(next),
      };
    },
  };
}

/** The RPCs of the default channel, which gets the alerts of rules that name no channel. */
function createDefaultChannelHandlers({
  alertSettings,
  channels,
  clock,
  ...deps
}: AlertApiDeps): Pick<Handlers<typeof AlertService>, "getDefaultChannel" | "setDefaultChannel"> {
  return {
    getDefaultChannel: async (_, call) => {
      const channelId = alertSettings.get(organizationOf(call))?.object.spec.defaultChannelId ?? undefined;
      return channelId === undefined ? {} : { channelId };
    },

    setDefaultChannel: ({ channelId }, call) => {
      requireUnlimited(call);
      const organizationId = organizationOf(call);
      const mutation = { action: "alert-settings.update", kind: "alert-settings", visibleIn: [alertSettings] } as const;
      return mutate(deps, call, mutation, async (unit) => {
        const spec = { defaultChannelId: referenceChannel(unit, channels, channelId, call) };
        const now = clock.now();
        const before = alertSettings.get(organizationId);
        const response = create(DefaultChannelSchema, channelId === undefined ? {} : { channelId });
        if (before === undefined)
          unit.create(alertSettingsKind, {
            metadata: newMetadata(organizationId, now, { organizationId }),
            spec,
            status: {},
          });
        else
          unit.update(alertSettingsKind, before, {
            ...before.object,
            metadata: nextMetadata(before.object.metadata, now),
            spec,
          });
        return { id: organizationId, response };
      });
    },
  };
}
