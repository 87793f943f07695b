import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Samples } from "../metric/samples/samples.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import type { Ownership } from "#kernel/runtime/ownership.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { AlertRuleObject, StoredRule } from "./alert-rule.ts";
import { createAlertTransitions, type Transition } from "./alert-transitions.ts";
import { evaluateRule, freshMs } from "./evaluate-rule.ts";
import { lookBackMs, slotOf, termsOf } from "./rule-terms.ts";
import type { RulesOfServices } from "./rules-of-services.ts";
import { createSampleReader, type MachineNeed } from "./sample-reader.ts";
import { nodesOfMetric, nodesToTell, restReason } from "./watched-service.ts";

export interface AlertEvaluatorDeps {
  readonly rules: Pick<Collection<AlertRuleObject>, "reached" | "ready">;
  readonly rulesOf: RulesOfServices;
  readonly services: Pick<Collection<ManagedServiceObject>, "get" | "ready">;
  readonly samples: Pick<Samples, "recent">;
  /** The channel that the rule's alerts go to now; null for none. */
  readonly channelFor: (rule: AlertRuleObject) => string | null;
  readonly ownership: Ownership;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly log: Log;
  /** How often samples are read; a second unless given. */
  readonly tickMs?: number;
}

export interface AlertEvaluator {
  /** Resolves when nothing of it runs any more. */
  stop(): Promise<void>;
}

interface Watched {
  readonly service: ManagedServiceObject;
  readonly rules: readonly StoredRule[];
  /** Since when each node that is to tell samples was seen to be so, by node. */
  readonly toTellSinceMs: ReadonlyMap<string, number>;
}

/**
 * Evaluates the rules of the services that this controller owns, by one statement a tick. It begins by itself; a controller that
 * takes over reads what it needs of the past. While the history does not answer, rules stay as they are.
 */
export function createAlertEvaluator(deps: AlertEvaluatorDeps): AlertEvaluator {
  const { rulesOf, services, ownership, clock, log } = deps;
  const stopping = new AbortController();
  const reader = createSampleReader(deps.samples);
  const transitions = createAlertTransitions(deps, stopping.signal);
  /** By service, from one look to the next. */
  let toTellSince = new Map<string, ReadonlyMap<string, number>>();
  /** The revision of each rule that was evaluated with all samples that were there. */
  let evaluated = new Map<string, bigint>();
  /** Since when the history answers without a break. */
  let readingSinceMs: number | undefined;

  async function look(): Promise<void> {
    const now = clock.now();
    const { active, ended } = watchedAt(now);
    await transitions.apply(ended);
    let told: ReadonlySet<string>;
    try {
      told = await reader.read(needsOf(active, now));
      readingSinceMs ??= now;
    } catch (error) {
      readingSinceMs = undefined;
      throw error;
    }
    const before = evaluated;
    evaluated = new Map();
    const changes = active.flatMap((watched) => changesOf(watched, { told, before, now }));
    // Looked at again, whatever comes of them.
    for (const { rule } of changes) evaluated.delete(rule.object.metadata.id);
    await transitions.apply(changes);
  }

  /** Services with rules that are ours, and what fires of those at rest. */
  function watchedAt(now: number): { active: Watched[]; ended: Transition[] } {
    const next = new Map<string, ReadonlyMap<string, number>>();
    const active: Watched[] = [];
    const ended: Transition[] = [];
    for (const id of rulesOf.services()) {
      const service = ownership.owns(id) ? services.get(id)?.object : undefined;
      if (service === undefined) continue;
      const rules = rulesOf.of(id);
      const reason = restReason(service);
      if (reason !== undefined) {
        for (const rule of rules) if (rule.object.status.fired !== null) ended.push({ rule, service, to: { reason } });
        continue;
      }
      const before = toTellSince.get(id);
      const toTellSinceMs = new Map(nodesToTell(service).map((node) => [node.id, before?.get(node.id) ?? now]));
      next.set(id, toTellSinceMs);
      active.push({ service, rules: rules.filter(({ object }) => !object.spec.paused), toTellSinceMs });
    }
    toTellSince = next;
    return { active, ended };
  }

  function changesOf(
    { service, rules, toTellSinceMs }: Watched,
    { told, before, now }: { told: ReadonlySet<string>; before: ReadonlyMap<string, bigint>; now: number },
  ): Transition[] {
    const nodes = service.spec.nodes.map(({ id }) => id);
    const windows = new Map(nodes.flatMap((id) => [[id, reader.window(id)] as const]));
    // A machine whose past was not read yet tells nothing, not even silence.
    if (nodes.some((id) => windows.get(id) === undefined)) return [];
    const hasNew = nodes.some((id) => told.has(id));
    const readSinceMs = readingSinceMs ?? now;
    const silentFromMs = new Map([...toTellSinceMs].map(([id, sinceMs]) => [id, Math.max(sinceMs, readSinceMs)]));
    return rules.flatMap((rule) => {
      const { metadata, spec, status } = rule.object;
      const slot = slotOf(rule.object);
      if (slot === undefined) return [];
      evaluated.set(metadata.id, rule.modRevision);
      const asksSilence = spec.noData === "fire" && status.fired?.state !== "no_data";
      const able = nodesOfMetric(service, spec.metric);
      const isSilent = asksSilence && able.some(({ id }) => now - (windows.get(id)?.newestMs(slot) ?? 0) > freshMs);
      if (!hasNew && !isSilent && before.get(metadata.id) === rule.modRevision) return [];
      const values = new Map(able.map(({ id }) => [id, windows.get(id)?.values(slot) ?? []]));
      const { fired } = status;
      const to = evaluateRule(termsOf(rule.object, service), values, {
        fired: fired === null ? undefined : { state: fired.state, nodeId: fired.nodeId, firedAtMs: fired.firedAt },
        nowMs: now,
        silentFromMs,
      });
      const fires = to.state === "firing" || to.state === "no_data";
      const isSame = fires ? fired?.state === to.state : fired === null;
      return isSame ? [] : [{ rule, service, to }];
    });
  }

  async function loop(): Promise<void> {
    let failing = false;
    while (!stopping.signal.aborted) {
      try {
        await look();
        failing = false;
      } catch (error) {
        if (stopping.signal.aborted) return;
        if (!failing) log.warn("alert rules wait", { error: String(error) });
        failing = true;
      }
      await delay(deps.tickMs ?? 1_000, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }
  const looping = Promise.all([deps.rules.ready, services.ready]).then(loop);

  return {
    async stop() {
      stopping.abort(new Error("the controller stops"));
      await looping;
    },
  };
}

/** What the rules need of each machine: as far back as the longest of them looks. */
function needsOf(active: readonly Watched[], now: number): ReadonlyMap<string, MachineNeed> {
  return new Map(
    active
      .filter(({ rules }) => rules.length > 0)
      .flatMap(({ service, rules }) => {
        const fromMs = now - Math.max(...rules.map(({ object }) => lookBackMs(object)));
        const slots = new Set(rules.flatMap(({ object }) => slotOf(object) ?? []));
        return service.spec.nodes.map(({ id }) => [id, { fromMs, slots }] as const);
      }),
  );
}
