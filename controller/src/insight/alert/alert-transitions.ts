import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { MonitoredOwner } from "#fleet/owner/monitored-owner.ts";
import type { Ownership } from "#kernel/runtime/ownership.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { Conflict, type UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { firedEvent, resolvedEvent } from "./alert-event.ts";
import {
  alertRuleKind,
  type AlertRuleObject,
  type FiredAlert,
  type ResolvedReason,
  type StoredRule,
} from "./alert-rule.ts";
import type { RuleEvaluation } from "./evaluate-rule.ts";

/** A change of a rule's stored state, by its samples or by the state of its owner. */
export interface Transition {
  readonly rule: StoredRule;
  readonly owner: MonitoredOwner;
  readonly to: RuleEvaluation | { readonly reason: ResolvedReason };
}

export interface AlertTransitions {
  /**
   * Writes each transition with its event in one transaction. A transition that conflicts with another write is
   * dropped; the next evaluation computes it again. Throws the first other failure after all transitions were tried.
   */
  apply(transitions: readonly Transition[]): Promise<void>;
}

interface Deps {
  readonly rules: Pick<Collection<AlertRuleObject>, "untilRevision">;
  /** The channel that gets the rule's alerts; null for none. */
  readonly channelFor: (rule: AlertRuleObject) => string | null;
  readonly ownership: Ownership;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly log: Log;
}

/** Number of concurrent transactions. */
const concurrencyMax = 32;
const reachedTimeoutMs = 1_000;

export function createAlertTransitions(deps: Deps, signal: AbortSignal): AlertTransitions {
  const { rules, ownership, begin, log } = deps;

  async function write({ rule, owner, to }: Transition): Promise<bigint | undefined> {
    const workLease = ownership.begin(owner.owner.id);
    if (workLease === undefined) return undefined;
    try {
      const { object } = rule;
      const unit = begin();
      const next = "reason" in to ? resolved(unit, object, to.reason, null) : evaluated(unit, object, owner, to);
      unit.update(alertRuleKind, rule, { ...object, status: { ...object.status, fired: next } });
      if (workLease.claim !== undefined) unit.onlyWhile(workLease.claim);
      const revision = await unit.commit(AbortSignal.any([signal, workLease.signal]));
      const { id, name } = object.metadata;
      const [from, state] = [object.status.fired?.state ?? "ok", next?.state ?? "ok"];
      log.info("alert rule changed", { rule: id, name, service: object.spec.serviceId, from, to: state });
      return revision;
    } catch (error) {
      if (error instanceof Conflict) return undefined;
      throw error;
    } finally {
      workLease.end();
    }
  }

  function resolved(unit: UnitOfWork, rule: AlertRuleObject, reason: ResolvedReason, value: number | null): null {
    const { fired } = rule.status;
    if (fired !== null) unit.event(resolvedEvent(rule, fired, { reason, at: deps.clock.now(), value }));
    return null;
  }

  function evaluated(
    unit: UnitOfWork,
    rule: AlertRuleObject,
    owner: MonitoredOwner,
    { state, sinceMs, nodeId, value }: RuleEvaluation,
  ): FiredAlert | null {
    if (state !== "firing" && state !== "no_data") return resolved(unit, rule, "condition_false", value ?? null);
    const before = rule.status.fired;
    // The rule fires already and only the state of its alert changes: no second event.
    if (before !== null) return { ...before, state };
    const now = deps.clock.now();
    const fired: FiredAlert = {
      id: deps.newId(),
      state,
      nodeId: nodeId ?? null,
      value: value ?? null,
      since: sinceMs ?? now,
      firedAt: now,
      channelId: deps.channelFor(rule),
      serviceName: owner.name,
    };
    unit.event(firedEvent(rule, fired));
    return fired;
  }

  return {
    async apply(transitions) {
      let newest = 0n;
      const failures: unknown[] = [];
      for (let at = 0; at < transitions.length && !signal.aborted; at += concurrencyMax) {
        const batch = transitions.slice(at, at + concurrencyMax);
        for (const result of await Promise.allSettled(batch.map(write))) {
          if (result.status === "rejected") failures.push(result.reason);
          else if (result.value !== undefined && result.value > newest) newest = result.value;
        }
      }
      // The next evaluation has to see these writes.
      if (newest > 0n) await rules.untilRevision(newest, reachedTimeoutMs);
      if (failures.length > 0) throw failures[0];
    },
  };
}
