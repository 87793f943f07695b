import type { Clock } from "@holdfast/common/clock.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import { again, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { newMetadata, type Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { resolvedEvent } from "./alert-event.ts";
import {
  alertRuleKind,
  alertRuleSetKind,
  type AlertRuleSetObject,
  defaultNameOf,
  defaultRulesOf,
  type RulesByService,
  touchRuleSet,
} from "./alert-rule.ts";

interface Deps {
  readonly services: Collection<ManagedServiceObject>;
  readonly rulesByService: RulesByService;
  readonly ruleSets: Collection<AlertRuleSetObject>;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** Number of rules removed in one transaction. */
const batch = 25;

/** Creates the default rules of each service once, and removes the rules of deleted services. Key: id of a service. */
export function createAlertRulesWork(deps: Deps): ControlLoop {
  const { services, rulesByService, ruleSets, begin, clock, newId } = deps;

  async function createDefaults(service: ManagedServiceObject, signal: AbortSignal): Promise<void> {
    const { id: serviceId, organizationId } = service.metadata;
    const created = ruleSets.get(serviceId)?.object.spec.createdDefaults ?? [];
    const missing = defaultRulesOf(service).filter(({ metric }) => !created.includes(metric));
    if (missing.length === 0) return;
    const now = clock.now();
    const unit = begin();
    for (const rule of missing) {
      const name = defaultNameOf(rule.metric, rule.condition, rule.threshold);
      unit.create(alertRuleKind, {
        metadata: newMetadata(newId(), now, { name, organizationId }),
        spec: { ...rule, serviceId, channelId: null, paused: false, since: now },
        status: { fired: null },
      });
    }
    const names = missing.map(({ metric }) => metric);
    touchRuleSet(unit, ruleSets, { serviceId, organizationId }, now, names);
    await unit.commit(signal);
  }

  /** True when no rule of the service remains. */
  async function removeAll(serviceId: string, set: Stored<AlertRuleSetObject> | undefined, signal: AbortSignal) {
    const rules = rulesByService.of(serviceId);
    if (rules.length === 0 && set === undefined) return true;
    const unit = begin();
    for (const rule of rules.slice(0, batch)) {
      unit.remove(alertRuleKind, rule);
      const { fired } = rule.object.status;
      const ending = { reason: "service_deleted", at: clock.now(), value: null } as const;
      if (fired !== null) unit.event(resolvedEvent(rule.object, fired, ending));
    }
    if (rules.length <= batch && set !== undefined) unit.remove(alertRuleSetKind, set);
    await unit.commit(signal);
    return rules.length <= batch;
  }

  return {
    reconciler: {
      name: "alert-rules",
      async reconcile(serviceId, signal) {
        const service = services.get(serviceId)?.object;
        if (service !== undefined) {
          if (service.metadata.deletionRequestedAt === undefined) await createDefaults(service, signal);
          return settled;
        }
        // The collection of services may lag behind that of rules: ask the store before anything is removed.
        if ((await services.getCurrent(serviceId, signal)) !== undefined) return again(1_000, "the service exists");
        return (await removeAll(serviceId, ruleSets.get(serviceId), signal)) ? settled : again(10, "more rules remain");
      },
    },
    *keys() {
      for (const { object } of services.values()) yield object.metadata.id;
      for (const id of rulesByService.services()) if (services.get(id) === undefined) yield id;
      for (const { object } of ruleSets.values())
        if (services.get(object.metadata.id) === undefined) yield object.metadata.id;
    },
    subscribe: (onChange) => services.subscribe(onChange),
    inputs: (id) => `${services.get(id)?.object.spec.nodes.length} ${ruleSets.get(id)?.modRevision ?? 0}`,
  };
}
