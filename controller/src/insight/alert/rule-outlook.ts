import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Samples } from "../metric/samples/samples.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import type { AlertRuleObject } from "./alert-rule.ts";
import { evaluateRule, type RuleEvaluation } from "./evaluate-rule.ts";
import { lookBackMs, slotOf, termsOf } from "./rule-terms.ts";
import { createSampleReader } from "./sample-reader.ts";
import { nodesOfMetric, restReason } from "./watched-service.ts";

/** Tells what samples say of rules of one service, on any controller. */
export type RuleOutlook = (
  service: ManagedServiceObject,
  rules: readonly AlertRuleObject[],
) => Promise<ReadonlyMap<string, RuleEvaluation>>;

/** By id of the rule. None of a service at rest, and none while the history does not answer. */
export function createRuleOutlook(deps: {
  readonly samples: Pick<Samples, "recent">;
  readonly clock: Clock;
  readonly log: Log;
}): RuleOutlook {
  return async (service, rules) => {
    const active = rules.filter(({ spec }) => !spec.paused);
    if (active.length === 0 || restReason(service) !== undefined) return new Map();
    const nowMs = deps.clock.now();
    const fromMs = nowMs - Math.max(...active.map(lookBackMs));
    const slots = new Set(active.flatMap((rule) => slotOf(rule) ?? []));
    const nodes = service.spec.nodes.map(({ id }) => id);
    const reader = createSampleReader(deps.samples);
    try {
      await reader.read(new Map(nodes.map((id) => [id, { fromMs, slots }])));
    } catch (error) {
      deps.log.debug("samples of rules not read", { error: String(error) });
      return new Map();
    }
    return new Map(
      active.flatMap((rule) => {
        const slot = slotOf(rule);
        if (slot === undefined) return [];
        const able = nodesOfMetric(service, rule.spec.metric);
        const values = new Map(able.map(({ id }) => [id, reader.window(id)?.values(slot) ?? []]));
        const { fired } = rule.status;
        const before = {
          fired: fired === null ? undefined : { state: fired.state, nodeId: fired.nodeId, firedAtMs: fired.firedAt },
          nowMs,
          silentFromMs: new Map<string, number>(),
        };
        return [[rule.metadata.id, evaluateRule(termsOf(rule, service), values, before)] as const];
      }),
    );
  };
}
