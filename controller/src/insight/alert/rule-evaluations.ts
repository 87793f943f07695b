import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { MonitoredOwner } from "#fleet/owner/monitored-owner.ts";
import type { Samples } from "../metric/samples/samples.ts";
import {
  type AlertRuleObject,
  lookBackMs,
  machinesOfRule,
  suspensionReason,
  metricNumberOf,
  parametersOf,
} from "./alert-rule.ts";
import { evaluateRule, type RuleEvaluation } from "./evaluate-rule.ts";
import { createSampleReader } from "./sample-reader.ts";

/**
 * Evaluates rules of one owner by its newest samples, on any controller. The result is by rule id; it is empty for an
 * owner that is stopped or deleted, and while the history is unavailable.
 */
export type EvaluateRules = (
  owner: MonitoredOwner,
  rules: readonly AlertRuleObject[],
) => Promise<ReadonlyMap<string, RuleEvaluation>>;

/** Creates the evaluation that the API uses: a controller that does not evaluate the owner reads the samples itself. */
export function createEvaluateRules(deps: {
  readonly samples: Pick<Samples, "recent">;
  readonly clock: Clock;
  readonly log: Log;
}): EvaluateRules {
  return async (owner, rules) => {
    const active = rules.filter(({ spec }) => !spec.paused);
    if (active.length === 0 || suspensionReason(owner) !== undefined) return new Map();
    const nowMs = deps.clock.now();
    const fromMs = nowMs - Math.max(...active.map(lookBackMs));
    const metricNumbers = new Set(active.flatMap((rule) => metricNumberOf(rule) ?? []));
    const nodes = owner.machines.map(({ id }) => id);
    const reader = createSampleReader(deps.samples);
    try {
      await reader.read(new Map(nodes.map((id) => [id, { fromMs, metricNumbers }])));
    } catch (error) {
      deps.log.debug("samples of alert rules not read", { error: String(error) });
      return new Map();
    }
    return new Map(
      active.flatMap((rule) => {
        const metricNumber = metricNumberOf(rule);
        if (metricNumber === undefined) return [];
        const measuredNodes = machinesOfRule(owner, rule, nowMs);
        const values = new Map(measuredNodes.map(({ id }) => [id, reader.window(id)?.values(metricNumber) ?? []]));
        const { fired } = rule.status;
        const before = {
          fired: fired === null ? undefined : { state: fired.state, nodeId: fired.nodeId, firedAtMs: fired.firedAt },
          nowMs,
          silentFromMs: new Map<string, number>(),
        };
        return [[rule.metadata.id, evaluateRule(parametersOf(rule, owner), values, before)] as const];
      }),
    );
  };
}
