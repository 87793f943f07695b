import type { Collection } from "#kernel/store/collection.ts";
import { type AlertRuleObject, serviceOfRule, type StoredRule } from "./alert-rule.ts";

/** The rules of each service. */
export interface RulesOfServices {
  /** In id order, which is age. */
  of(serviceId: string): StoredRule[];
  /** Ids of services that have rules. */
  services(): IterableIterator<string>;
}

export function createRulesOfServices(rules: Pick<Collection<AlertRuleObject>, "by" | "keysOf">): RulesOfServices {
  return {
    of: (serviceId) => rules.by(serviceOfRule, serviceId),
    services: () => rules.keysOf(serviceOfRule),
  };
}
