import type { Clock } from "@holdfast/common/clock.ts";
import type { MonitoredOwner } from "#fleet/owner/monitored-owner.ts";
import type { MonitoredOwners } from "#fleet/owner/monitored-owners.ts";
import { again, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { newMetadata, type Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { resolvedEvent } from "./alert-event.ts";
import {
  alertRuleKind,
  type AlertRuleObject,
  alertRuleSetKind,
  type AlertRuleSetObject,
  defaultNameOf,
  defaultRulesOf,
  ownerField,
  ownerKindOf,
  type ResolvedReason,
  type RulesByService,
  touchRuleSet,
} from "./alert-rule.ts";

interface Deps {
  readonly owners: MonitoredOwners;
  readonly rulesByService: RulesByService;
  readonly ruleSets: Collection<AlertRuleSetObject>;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** Number of rules that are removed in one transaction. */
const batch = 25;

/** Creates the default rules of each owner once, and removes the rules of deleted owners. Key: id of an owner. */
export function createAlertRulesWork(deps: Deps): ControlLoop {
  const { owners, rulesByService, ruleSets, begin, clock, newId } = deps;

  async function createDefaults(owner: MonitoredOwner, signal: AbortSignal): Promise<void> {
    const { organizationId } = owner;
    const { kind, id: serviceId } = owner.owner;
    // An owner of the platform has no user who would get its alerts.
    const monitoring = organizationId === "" ? undefined : owners.kinds.get(kind);
    if (monitoring === undefined) return;
    const created = ruleSets.get(serviceId)?.object.spec.createdDefaults ?? [];
    const missing = defaultRulesOf(owner, monitoring).filter(({ metric }) => !created.includes(metric));
    if (missing.length === 0) return;
    const now = clock.now();
    const unit = begin();
    for (const rule of missing) {
      const name = defaultNameOf(rule.metric, rule.condition, rule.threshold);
      unit.create(alertRuleKind, {
        metadata: newMetadata(newId(), now, { name, organizationId }),
        spec: { ...rule, serviceId, ...ownerField(owner), channelId: null, paused: false, since: now },
        status: { fired: null },
      });
    }
    const names = missing.map(({ metric }) => metric);
    touchRuleSet(unit, ruleSets, { serviceId, organizationId }, now, names);
    await unit.commit(signal);
  }

  /** Removes rules of a deleted owner. True if no rule remains. */
  async function removeAll(serviceId: string, set: Stored<AlertRuleSetObject> | undefined, signal: AbortSignal) {
    const rules = rulesByService.of(serviceId);
    const reasonOf = ({ spec }: AlertRuleObject): ResolvedReason =>
      `${owners.kinds.get(ownerKindOf(spec))?.noun ?? "owner"}_deleted`;
    if (rules.length === 0 && set === undefined) return true;
    const unit = begin();
    for (const rule of rules.slice(0, batch)) {
      unit.remove(alertRuleKind, rule);
      const { fired } = rule.object.status;
      const ending = { reason: reasonOf(rule.object), at: clock.now(), value: null } as const;
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
        const owner = owners.get(serviceId);
        if (owner !== undefined) {
          if (owner.suspension !== "deleted") await createDefaults(owner, signal);
          return settled;
        }
        // The collection of owners may lag behind the collection of rules: read the store before rules are removed.
        if (await owners.exists(serviceId, signal)) return again(1_000, "the owner exists");
        return (await removeAll(serviceId, ruleSets.get(serviceId), signal)) ? settled : again(10, "more rules remain");
      },
    },
    *keys() {
      yield* owners.ids();
      for (const id of rulesByService.services()) if (owners.get(id) === undefined) yield id;
      for (const { object } of ruleSets.values())
        if (owners.get(object.metadata.id) === undefined) yield object.metadata.id;
    },
    subscribe: owners.subscribe,
    inputs: (id) => `${owners.get(id)?.machines.length} ${ruleSets.get(id)?.modRevision ?? 0}`,
  };
}
