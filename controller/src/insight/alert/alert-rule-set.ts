import type { Collection } from "#kernel/store/collection.ts";
import { newMetadata, nextMetadata } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { alertRuleSetKind, type AlertRuleSetObject } from "./alert-rule.ts";

/**
 * Touches the service's set of rules, so that of two who add to it one has a Conflict and counts again. `defaultsMade` are the
 * default rules that are made with it.
 */
export function touchRuleSet(
  unit: UnitOfWork,
  sets: Pick<Collection<AlertRuleSetObject>, "get">,
  { serviceId, organizationId }: { readonly serviceId: string; readonly organizationId: string },
  now: number,
  defaultsMade: readonly string[] = [],
): void {
  const before = sets.get(serviceId);
  if (before === undefined) {
    const metadata = newMetadata(serviceId, now, { organizationId });
    unit.create(alertRuleSetKind, { metadata, spec: { defaultsMade }, status: {} });
    return;
  }
  const { metadata, spec } = before.object;
  unit.update(alertRuleSetKind, before, {
    ...before.object,
    metadata: nextMetadata(metadata, now),
    spec: { ...spec, defaultsMade: [...new Set([...spec.defaultsMade, ...defaultsMade])] },
  });
}
