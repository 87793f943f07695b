import { next } from "@holdfast/common/machine.ts";
import type { AlertCondition } from "./alert-rule.ts";
import { type AlertRuleEvent, alertRuleLifecycle, type AlertRuleState } from "./alert-rule-lifecycle.ts";

/** What a rule asks. */
export interface RuleTerms {
  readonly condition: AlertCondition;
  readonly threshold: number;
  readonly durationMs: number;
  readonly noData: "ignore" | "fire";
  /** Samples from before do not count. */
  readonly sinceMs: number;
}

/** The metric's samples of the nodes that can have it, each with an entry; in any order, and some maybe twice. */
export type NodeSamples = ReadonlyMap<string, readonly SampleValue[]>;

export interface SampleValue {
  readonly timeMs: number;
  readonly value: number;
}

/** What is so before: what is stored, and what time it is. */
export interface RuleBefore {
  /** Undefined unless the rule fires. */
  readonly fired:
    | { readonly state: "firing" | "no_data"; readonly nodeId: string | null; readonly firedAtMs: number }
    | undefined;
  readonly nowMs: number;
  /** Of each node that is to tell samples now: from when on its silence counts. */
  readonly silentFromMs: ReadonlyMap<string, number>;
}

export interface RuleEvaluation {
  readonly state: Exclude<AlertRuleState, "paused">;
  /** Since when the condition holds, or there are no data; undefined while neither is so. */
  readonly sinceMs: number | undefined;
  /** The node that decides. */
  readonly nodeId: string | undefined;
  /** Its newest value. */
  readonly value: number | undefined;
}

/** So old a sample tells nothing of now. */
export const freshMs = 60_000;
/** Clocks of machines may be ahead of ours by so much. */
const aheadMs = 60_000;

interface Told {
  readonly nodeId: string;
  readonly newest: SampleValue;
  readonly isTrue: boolean;
  /** The first sample from which on all are true. */
  readonly trueSinceMs: number;
}

/**
 * Pure: the state of a rule that is not paused, from the samples and from what is stored. The same samples in another order, or
 * some of them twice, give the same. A missing sample changes nothing but no_data.
 */
export function evaluateRule(rule: RuleTerms, samples: NodeSamples, before: RuleBefore): RuleEvaluation {
  const told = [...samples].flatMap(([nodeId, values]) => toldBy(nodeId, values, rule, before.nowMs) ?? []);
  const worst = worstOf(
    told.filter(({ isTrue }) => isTrue),
    rule,
  );
  const held = worstOf(
    told.filter((node) => holds(node, rule) && isFresh(node, before.nowMs)),
    rule,
  );
  const silent = silentNode(samples, told, rule, before);
  let state: RuleEvaluation["state"] = before.fired?.state ?? "ok";
  const step = (event: AlertRuleEvent) => {
    const row = next(alertRuleLifecycle, state, event);
    if (row !== undefined && row[2] !== "paused") state = row[2];
  };
  if (worst !== undefined) step("conditionTrue");
  if (held !== undefined) step("heldForDuration");
  if (worst === undefined && isRefuted(told, samples, before)) step("conditionFalse");
  if (silent !== undefined) step("noSample");

  if (state === "no_data") return { state, sinceMs: silent?.sinceMs, nodeId: silent?.nodeId, value: undefined };
  const decides = (state === "firing" ? held : undefined) ?? worst ?? worstOf(told, rule);
  const sinceMs =
    worst === undefined
      ? undefined
      : Math.min(...told.filter(({ isTrue }) => isTrue).map(({ trueSinceMs }) => trueSinceMs));
  return {
    state,
    sinceMs: state === "ok" ? undefined : sinceMs,
    nodeId: decides?.nodeId,
    value: decides?.newest.value,
  };
}

/** Is the condition true of the value? */
function isMet({ condition, threshold }: Pick<RuleTerms, "condition" | "threshold">, value: number): boolean {
  return condition === "gt" ? value > threshold : value < threshold;
}

/** Undefined for a node without a sample that counts. */
function toldBy(nodeId: string, values: readonly SampleValue[], rule: RuleTerms, nowMs: number): Told | undefined {
  let newest: SampleValue | undefined;
  let falseAtMs = Number.NEGATIVE_INFINITY;
  const counts = ({ timeMs }: SampleValue) => timeMs >= rule.sinceMs && timeMs <= nowMs + aheadMs;
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

function holds({ isTrue, newest, trueSinceMs }: Told, { durationMs }: RuleTerms): boolean {
  return isTrue && newest.timeMs - trueSinceMs >= durationMs;
}

/** What was so in a time that is over fires nothing now. */
function isFresh({ newest }: Told, nowMs: number): boolean {
  return newest.timeMs >= nowMs - freshMs;
}

/** Did the node that fired, if it can still have the metric, tell that the condition is false? */
function isRefuted(told: readonly Told[], samples: NodeSamples, { fired }: RuleBefore): boolean {
  // Nobody is left of whom it could be true.
  if (samples.size === 0) return true;
  if (told.length === 0) return false;
  if (fired === undefined || fired.nodeId === null || !samples.has(fired.nodeId)) return true;
  const node = told.find(({ nodeId }) => nodeId === fired.nodeId);
  // The last sample before a silence does not end it.
  return node !== undefined && (fired.state === "firing" || node.newest.timeMs > fired.firedAtMs - freshMs);
}

function silentNode(
  samples: NodeSamples,
  told: readonly Told[],
  rule: RuleTerms,
  { nowMs, silentFromMs }: RuleBefore,
): { nodeId: string; sinceMs: number } | undefined {
  if (rule.noData !== "fire") return undefined;
  const silent = [...silentFromMs]
    .filter(([nodeId]) => samples.has(nodeId))
    .map(([nodeId, fromMs]) => ({ nodeId, sinceMs: Math.max(fromMs, rule.sinceMs, newestOf(told, nodeId)) }))
    .filter(({ sinceMs }) => nowMs - sinceMs > freshMs);
  return silent.sort((a, b) => a.sinceMs - b.sinceMs || (a.nodeId < b.nodeId ? -1 : 1))[0];
}

function newestOf(told: readonly Told[], nodeId: string): number {
  return told.find((node) => node.nodeId === nodeId)?.newest.timeMs ?? Number.NEGATIVE_INFINITY;
}

/** The furthest beyond the threshold; of equals the first by id. */
function worstOf(told: readonly Told[], { condition }: RuleTerms): Told | undefined {
  const sign = condition === "gt" ? -1 : 1;
  return told.toSorted((a, b) => sign * (a.newest.value - b.newest.value) || (a.nodeId < b.nodeId ? -1 : 1))[0];
}
