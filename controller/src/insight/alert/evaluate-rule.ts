import { next } from "@holdfast/common/machine.ts";
import type { RuleParameters } from "./alert-rule.ts";
import { type AlertRuleEvent, alertRuleLifecycle, type AlertRuleState } from "./alert-rule-lifecycle.ts";

/**
 * Samples of a metric by node id, in any order and possibly twice. Every node that can have the metric has an entry.
 */
export type NodeSamples = ReadonlyMap<string, readonly SampleValue[]>;

export interface SampleValue {
  readonly timeMs: number;
  readonly value: number;
}

/** The stored state of a rule, and the current time. */
export interface RuleBefore {
  /** The current alert; undefined unless the rule fires. */
  readonly fired:
    | { readonly state: "firing" | "no_data"; readonly nodeId: string | null; readonly firedAtMs: number }
    | undefined;
  readonly nowMs: number;
  /** Time from which missing samples count as silence, by node id. Nodes that need not report now are absent. */
  readonly silentFromMs: ReadonlyMap<string, number>;
}

export interface RuleEvaluation {
  readonly state: Exclude<AlertRuleState, "paused">;
  /** Start of the time for which the condition holds, or data are missing; undefined for `ok`. */
  readonly sinceMs: number | undefined;
  /** Id of the node whose value decides the state. */
  readonly nodeId: string | undefined;
  /** Newest value of that node. */
  readonly value: number | undefined;
}

/** Age from which a sample is not current any more. */
export const staleAfterMs = 60_000;
/** Maximum tolerated lead of a machine's clock; later samples are ignored. */
const clockSkewMaxMs = 60_000;

interface NodeCondition {
  readonly nodeId: string;
  readonly newest: SampleValue;
  readonly isTrue: boolean;
  /** Time of the first sample of the current run of samples that meet the condition. */
  readonly trueSinceMs: number;
}

/**
 * The state of a rule that is not paused, from its samples and its stored state. The result does not depend on the
 * order of samples or on duplicates. A missing sample can only cause `no_data`.
 */
export function evaluateRule(rule: RuleParameters, samples: NodeSamples, before: RuleBefore): RuleEvaluation {
  const conditions = [...samples].flatMap(
    ([nodeId, values]) => conditionOfNode(nodeId, values, rule, before.nowMs) ?? [],
  );
  const worst = worstOf(
    conditions.filter(({ isTrue }) => isTrue),
    rule,
  );
  const sustained = worstOf(
    conditions.filter((node) => isSustained(node, rule) && isCurrent(node, before.nowMs)),
    rule,
  );
  const silent = silentNode(samples, conditions, rule, before);
  let state: RuleEvaluation["state"] = before.fired?.state ?? "ok";
  const step = (event: AlertRuleEvent) => {
    const row = next(alertRuleLifecycle, state, event);
    if (row !== undefined && row[2] !== "paused") state = row[2];
  };
  if (worst !== undefined) step("conditionTrue");
  if (sustained !== undefined) step("heldForDuration");
  if (worst === undefined && isResolved(conditions, samples, before)) step("conditionFalse");
  if (silent !== undefined) step("noSample");

  if (state === "no_data") return { state, sinceMs: silent?.sinceMs, nodeId: silent?.nodeId, value: undefined };
  const deciding = (state === "firing" ? sustained : undefined) ?? worst ?? worstOf(conditions, rule);
  const sinceMs =
    worst === undefined
      ? undefined
      : Math.min(...conditions.filter(({ isTrue }) => isTrue).map(({ trueSinceMs }) => trueSinceMs));
  return {
    state,
    sinceMs: state === "ok" ? undefined : sinceMs,
    nodeId: deciding?.nodeId,
    value: deciding?.newest.value,
  };
}

/** True if the value meets the condition. */
function isMet({ condition, threshold }: Pick<RuleParameters, "condition" | "threshold">, value: number): boolean {
  return condition === "gt" ? value > threshold : value < threshold;
}

/** Evaluates the condition for a node; undefined without a sample in the evaluated time range. */
function conditionOfNode(
  nodeId: string,
  values: readonly SampleValue[],
  rule: RuleParameters,
  nowMs: number,
): NodeCondition | undefined {
  let newest: SampleValue | undefined;
  let falseAtMs = Number.NEGATIVE_INFINITY;
  const counts = ({ timeMs }: SampleValue) => timeMs >= rule.sinceMs && timeMs <= nowMs + clockSkewMaxMs;
  for (const sample of values) {
    if (!counts(sample)) continue;
    if (newest === undefined || sample.timeMs > newest.timeMs) newest = sample;
    if (!isMet(rule, sample.value)) falseAtMs = Math.max(falseAtMs, sample.timeMs);
  }
  if (newest === undefined) return undefined;
  let trueSinceMs = newest.timeMs;
  for (const sample of values)
    if (counts(sample) && sample.timeMs > falseAtMs) trueSinceMs = Math.min(trueSinceMs, sample.timeMs);
  return { nodeId, newest, isTrue: falseAtMs < newest.timeMs, trueSinceMs };
}

function isSustained({ isTrue, newest, trueSinceMs }: NodeCondition, { durationMs }: RuleParameters): boolean {
  return isTrue && newest.timeMs - trueSinceMs >= durationMs;
}

/** True if the newest sample is current: old samples that arrive late do not fire the rule. */
function isCurrent({ newest }: NodeCondition, nowMs: number): boolean {
  return newest.timeMs >= nowMs - staleAfterMs;
}

/**
 * True if the condition has ended: the node that fired reported a value that does not meet it, or cannot have the
 * metric any more.
 */
function isResolved(conditions: readonly NodeCondition[], samples: NodeSamples, { fired }: RuleBefore): boolean {
  // No node can have the metric any more.
  if (samples.size === 0) return true;
  if (conditions.length === 0) return false;
  if (fired === undefined || fired.nodeId === null || !samples.has(fired.nodeId)) return true;
  const node = conditions.find(({ nodeId }) => nodeId === fired.nodeId);
  // The last sample before the silence does not end `no_data`.
  return node !== undefined && (fired.state === "firing" || node.newest.timeMs > fired.firedAtMs - staleAfterMs);
}

function silentNode(
  samples: NodeSamples,
  conditions: readonly NodeCondition[],
  rule: RuleParameters,
  { nowMs, silentFromMs }: RuleBefore,
): { nodeId: string; sinceMs: number } | undefined {
  if (rule.noData !== "fire") return undefined;
  const silent = [...silentFromMs]
    .filter(([nodeId]) => samples.has(nodeId))
    .map(([nodeId, fromMs]) => ({ nodeId, sinceMs: Math.max(fromMs, rule.sinceMs, newestOf(conditions, nodeId)) }))
    .filter(({ sinceMs }) => nowMs - sinceMs > staleAfterMs);
  return silent.sort((a, b) => a.sinceMs - b.sinceMs || (a.nodeId < b.nodeId ? -1 : 1))[0];
}

function newestOf(conditions: readonly NodeCondition[], nodeId: string): number {
  return conditions.find((node) => node.nodeId === nodeId)?.newest.timeMs ?? Number.NEGATIVE_INFINITY;
}

/** The node with the value furthest beyond the threshold; the smallest id among equals. */
function worstOf(conditions: readonly NodeCondition[], { condition }: RuleParameters): NodeCondition | undefined {
  const sign = condition === "gt" ? -1 : 1;
  return conditions.toSorted((a, b) => sign * (a.newest.value - b.newest.value) || (a.nodeId < b.nodeId ? -1 : 1))[0];
}
