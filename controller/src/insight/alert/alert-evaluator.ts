import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Samples } from "../metric/samples/samples.ts";
import { isInPlannedWork, type MonitoredOwner } from "#fleet/owner/monitored-owner.ts";
import type { MonitoredOwners } from "#fleet/owner/monitored-owners.ts";
import type { Ownership } from "#kernel/runtime/ownership.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import {
  type AlertRuleObject,
  lookBackMs,
  machinesOfRule,
  suspensionReason,
  type RulesByService,
  metricNumberOf,
  type StoredRule,
  parametersOf,
} from "./alert-rule.ts";
import { createAlertTransitions, type Transition } from "./alert-transitions.ts";
import { evaluateRule, staleAfterMs } from "./evaluate-rule.ts";
import { createSampleReader, type SampleRange } from "./sample-reader.ts";

export interface AlertEvaluatorDeps {
  readonly rules: Pick<Collection<AlertRuleObject>, "untilRevision" | "ready">;
  readonly rulesByService: RulesByService;
  readonly owners: Pick<MonitoredOwners, "get" | "ready">;
  readonly samples: Pick<Samples, "recent">;
  /** The channel that gets the rule's alerts; null for none. */
  readonly channelFor: (rule: AlertRuleObject) => string | null;
  readonly ownership: Ownership;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly log: Log;
  /** Interval between evaluations; one second by default. */
  readonly tickMs?: number;
}

export interface AlertEvaluator {
  /** Resolves when the loop has ended. */
  stop(): Promise<void>;
}

interface WatchedOwner {
  readonly owner: MonitoredOwner;
  readonly rules: readonly StoredRule[];
  /** Time since which a machine is expected to report samples, by machine id. */
  readonly expectedSinceMs: ReadonlyMap<string, number>;
}

/**
 * Evaluates the rules of all owners of machines whose keys this controller owns. Each tick reads the new samples of all
 * machines with one statement, computes each rule's state (`evaluateRule`), and stores the states that changed together
 * with their events (`createAlertTransitions`). A controller that takes over an owner reads as much history as its
 * rules need. While the history is unavailable, no rule changes.
 */
export function createAlertEvaluator(deps: AlertEvaluatorDeps): AlertEvaluator {
  const { rulesByService, owners, ownership, clock, log } = deps;
  const stopping = new AbortController();
  const reader = createSampleReader(deps.samples);
  const transitions = createAlertTransitions(deps, stopping.signal);
  /** `expectedSinceMs` of the previous tick, by owner id. */
  let expectedSince = new Map<string, ReadonlyMap<string, number>>();
  /** Revision of each rule that was last evaluated, by rule id. An unchanged rule without new samples is skipped. */
  let evaluated = new Map<string, bigint>();
  /** Time since which all reads of the history have succeeded. */
  let readingSinceMs: number | undefined;

  async function evaluateAll(): Promise<void> {
    const now = clock.now();
    const { active, ended } = watchedAt(now);
    await transitions.apply(ended);
    let updated: ReadonlySet<string>;
    try {
      updated = await reader.read(rangesOf(active, now));
      readingSinceMs ??= now;
    } catch (error) {
      readingSinceMs = undefined;
      throw error;
    }
    const before = evaluated;
    evaluated = new Map();
    const changes = active.flatMap((watched) => changesOf(watched, { updated, before, now }));
    // These rules are evaluated again in the next tick, also if their transition fails.
    for (const { rule } of changes) evaluated.delete(rule.object.metadata.id);
    await transitions.apply(changes);
  }

  /** The owners with rules whose keys this controller owns, and the firing rules of stopped or deleted owners. */
  function watchedAt(now: number): { active: WatchedOwner[]; ended: Transition[] } {
    const next = new Map<string, ReadonlyMap<string, number>>();
    const active: WatchedOwner[] = [];
    const ended: Transition[] = [];
    for (const id of rulesByService.services()) {
      const owner = ownership.owns(id) ? owners.get(id) : undefined;
      if (owner === undefined) continue;
      const rules = rulesByService.of(id);
      const reason = suspensionReason(owner);
      if (reason !== undefined) {
        for (const rule of rules) if (rule.object.status.fired !== null) ended.push({ rule, owner, to: { reason } });
        continue;
      }
      const before = expectedSince.get(id);
      const expectedSinceMs = new Map(
        owner.machines.flatMap((each) =>
          each.isExpected && !isInPlannedWork(each, now) ? [[each.id, before?.get(each.id) ?? now] as const] : [],
        ),
      );
      next.set(id, expectedSinceMs);
      active.push({ owner, rules: rules.filter(({ object }) => !object.spec.paused), expectedSinceMs });
    }
    expectedSince = next;
    return { active, ended };
  }

  function changesOf(
    { owner, rules, expectedSinceMs }: WatchedOwner,
    { updated, before, now }: { updated: ReadonlySet<string>; before: ReadonlyMap<string, bigint>; now: number },
  ): Transition[] {
    const nodes = owner.machines.map(({ id }) => id);
    const windows = new Map(nodes.flatMap((id) => [[id, reader.window(id)] as const]));
    // Without the machine's samples in memory neither a value nor silence can be evaluated.
    if (nodes.some((id) => windows.get(id) === undefined)) return [];
    const hasNew = nodes.some((id) => updated.has(id));
    const readSinceMs = readingSinceMs ?? now;
    const silentFromMs = new Map([...expectedSinceMs].map(([id, sinceMs]) => [id, Math.max(sinceMs, readSinceMs)]));
    return rules.flatMap((rule) => {
      const { metadata, spec, status } = rule.object;
      const metricNumber = metricNumberOf(rule.object);
      if (metricNumber === undefined) return [];
      evaluated.set(metadata.id, rule.modRevision);
      const firesOnSilence = spec.noData === "fire" && status.fired?.state !== "no_data";
      const measuredNodes = machinesOfRule(owner, rule.object, now);
      const isSilent =
        firesOnSilence &&
        measuredNodes.some(({ id }) => now - (windows.get(id)?.newestMs(metricNumber) ?? 0) > staleAfterMs);
      if (!hasNew && !isSilent && before.get(metadata.id) === rule.modRevision) return [];
      const values = new Map(measuredNodes.map(({ id }) => [id, windows.get(id)?.values(metricNumber) ?? []]));
      const { fired } = status;
      const to = evaluateRule(parametersOf(rule.object, owner), values, {
        fired: fired === null ? undefined : { state: fired.state, nodeId: fired.nodeId, firedAtMs: fired.firedAt },
        nowMs: now,
        silentFromMs,
      });
      const fires = to.state === "firing" || to.state === "no_data";
      const isSame = fires ? fired?.state === to.state : fired === null;
      return isSame ? [] : [{ rule, owner, to }];
    });
  }

  async function loop(): Promise<void> {
    let failing = false;
    while (!stopping.signal.aborted) {
      try {
        await evaluateAll();
        failing = false;
      } catch (error) {
        if (stopping.signal.aborted) return;
        if (!failing) log.warn("alert evaluation failed", { error: String(error) });
        failing = true;
      }
      await delay(deps.tickMs ?? 1_000, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }
  const looping = Promise.all([deps.rules.ready, owners.ready]).then(loop);

  return {
    async stop() {
      stopping.abort(new Error("the controller stops"));
      await looping;
    },
  };
}

/** The metrics and the time range that rules evaluate, by machine id. */
function rangesOf(active: readonly WatchedOwner[], now: number): ReadonlyMap<string, SampleRange> {
  return new Map(
    active
      .filter(({ rules }) => rules.length > 0)
      .flatMap(({ owner, rules }) => {
        const fromMs = now - Math.max(...rules.map(({ object }) => lookBackMs(object)));
        const metricNumbers = new Set(rules.flatMap(({ object }) => metricNumberOf(object) ?? []));
        return owner.machines.map(({ id }) => [id, { fromMs, metricNumbers }] as const);
      }),
  );
}
