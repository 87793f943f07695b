import { setTimeout as delay } from "node:timers/promises";
import { backOffMs } from "@holdfast/common/back-off.ts";
import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { EntryPlanner } from "#kernel/outbox/entry-planner.ts";
import type { Ownership } from "#kernel/runtime/ownership.ts";
import type { EventEntry } from "#kernel/store/outbox-entry.ts";
import { attemptDelivery, type AttemptDeps, createAttemptRecorder } from "./attempts.ts";
import { type Deliveries, newDeliveries, type NewDelivery, type WaitingDelivery } from "./deliveries.ts";
import { createEndpointLimits, type AttemptLimits } from "./endpoint-limits.ts";
import { refusesDeliveries, type Receivers } from "./receiver.ts";

/**
 * Delivers events to webhook endpoints and channels. All waiting deliveries are in the history, so another controller
 * continues after a crash.
 */
export interface DeliveryDispatcher extends EntryPlanner {
  /** Starts no further attempts, and gives those in flight one second. */
  stop(): Promise<void>;
}

interface Deps extends AttemptDeps {
  readonly receivers: Receivers;
  readonly deliveries: Deliveries;
  readonly ownership: Ownership;
  readonly random: () => number;
  readonly log: Log;
  readonly limits?: AttemptLimits;
}

/** The controller that moves the outbox also sends deliveries, so new deliveries need no query. */
const ownershipKey = "outbox";
/** Interval of the poll for redeliveries. */
const pollIntervalMs = 1_000;
const stopGraceMs = 1_000;
/** Maximum wait for the collection of receivers to include the revision of an event; otherwise the event is retried. */
const receiversTimeoutMs = 1_000;

/** Creates and starts the dispatcher. A single loop reads from the history, so that no delivery is started twice. */
export function createDeliveryDispatcher(deps: Deps): DeliveryDispatcher {
  const { receivers, deliveries, ownership, clock, log } = deps;
  const stopping = new AbortController();
  const abortAttempts = new AbortController();
  const running = new Set<Promise<void>>();
  /** Deliveries that rounds started since the plan of an insert; one set per insert in progress. */
  const startedByRounds = new Set<Set<string>>();
  const endpointLimits = createEndpointLimits((id) => receivers.get(id)?.organizationId, deps.limits);
  const recorder = createAttemptRecorder({ ...deps, signal: abortAttempts.signal });
  let awake = Promise.withResolvers<void>();
  let isOwner = false;
  let repeatsAt = 0;

  const wake = () => awake.resolve();
  const stopped = Promise.withResolvers<void>();
  stopping.signal.addEventListener("abort", () => stopped.resolve(), { once: true });
  const watching = [ownership.subscribe(wake), receivers.subscribe(receiverChanged)];
  const looping = loop();

  function receiverChanged(id: string): void {
    if (receivers.get(id)?.isActive === true) return;
    endpointLimits.remove(id);
    if (isOwner) deliveries.forget(id).catch((error) => log.warn("deliveries not deleted", { error: String(error) }));
  }

  async function loop(): Promise<void> {
    // Wait until all receivers are in memory: deliveries of unknown receivers would be deleted.
    await Promise.race([receivers.ready, stopped.promise]);
    let failures = 0;
    while (!stopping.signal.aborted) {
      awake = Promise.withResolvers();
      try {
        const more = await round();
        failures = 0;
        if (!more) await waitFor(Math.min(pollIntervalMs, Math.max(0, endpointLimits.nextAt() - clock.now())));
      } catch (error) {
        if (stopping.signal.aborted) return;
        failures += 1;
        if (failures === 1) log.warn("deliveries not started", { error: String(error) });
        await waitFor(backOffMs(failures, deps.random, { maxMs: 5_000 }));
      }
    }
  }

  /** Starts due deliveries; returns true if more may be due. */
  async function round(): Promise<boolean> {
    const workLease = ownership.begin(ownershipKey);
    if (workLease === undefined) {
      isOwner = false;
      return false;
    }
    try {
      if (!isOwner) expectAll();
      isOwner = true;
      await takeRepeats();
      return await beginWaiting();
    } finally {
      workLease.end();
    }
  }

  async function takeRepeats(): Promise<void> {
    const now = clock.now();
    if (now < repeatsAt) return;
    try {
      for (const webhookId of await deliveries.takeRepeats(now)) endpointLimits.expect(webhookId, now);
    } catch (error) {
      // The statement may have committed although its result is lost, so any endpoint may have due redeliveries.
      expectAll();
      throw error;
    }
    repeatsAt = now + pollIntervalMs;
  }

  function expectAll(): void {
    for (const id of receivers.ids()) endpointLimits.expect(id, 0);
  }

  /** Starts due deliveries within the limits, read from the history. */
  async function beginWaiting(): Promise<boolean> {
    const capacities = endpointLimits.take(clock.now());
    if (capacities.length === 0) return false;
    let next: WaitingDelivery[];
    try {
      next = await deliveries.next(capacities, endpointLimits.inFlight(capacities));
    } catch (error) {
      for (const { webhookId } of capacities) endpointLimits.expect(webhookId, 0);
      throw error;
    } finally {
      endpointLimits.release(capacities);
    }
    const now = clock.now();
    const started = new Map<string, number>();
    for (const delivery of next) {
      const { webhookId, dueAt } = delivery;
      if (dueAt > now) endpointLimits.expect(webhookId, dueAt);
      else {
        started.set(webhookId, (started.get(webhookId) ?? 0) + 1);
        endpointLimits.begin(webhookId, delivery.id);
        for (const ids of startedByRounds) ids.add(delivery.id);
        track(attempt(delivery));
      }
    }
    // The capacity was used up, so more deliveries may be due.
    for (const { webhookId, capacity } of capacities)
      if (started.get(webhookId) === capacity) endpointLimits.expect(webhookId, 0);
    return started.size > 0;
  }

  async function attempt(delivery: WaitingDelivery): Promise<void> {
    const { id, webhookId } = delivery;
    const receiver = receivers.get(webhookId);
    let succeeded = false;
    try {
      // The receiver was deleted or disabled after the read: delete its deliveries.
      if (receiver === undefined || !receiver.isActive) return await deliveries.forget(webhookId);
      const ended = await attemptDelivery(receiver, delivery, deps, abortAttempts.signal);
      const failingSince = await recorder.record(ended);
      succeeded = ended.errorMessage === null;
      if (ended.nextDueAt !== null) endpointLimits.expect(webhookId, ended.nextDueAt);
      if (failingSince !== null && !succeeded)
        await receivers.failing(
          webhookId,
          { since: failingSince, refusesDeliveries: refusesDeliveries(ended) },
          abortAttempts.signal,
        );
    } catch (error) {
      if (abortAttempts.signal.aborted) return;
      log.error("delivery failed", { webhook: webhookId, error });
      endpointLimits.expect(webhookId, clock.now() + pollIntervalMs);
    } finally {
      endpointLimits.end(webhookId, id, succeeded);
      wake();
    }
  }

  /**
   * Starts inserted deliveries immediately if the limits allow it, except those that a round started between the commit
   * and its result. The next round reads the others from the history, and the rows of an insert without a result.
   */
  function begin(
    planned: readonly WaitingDelivery[],
    by: { inserted: ReadonlySet<string>; rounds: Set<string> },
  ): void {
    const now = clock.now();
    for (const delivery of planned) {
      const { id, webhookId } = delivery;
      if (by.rounds.has(id)) continue;
      const isNew = by.inserted.has(id) && !stopping.signal.aborted;
      if (isNew && endpointLimits.tryBegin(webhookId, id, now)) track(attempt(delivery));
      else endpointLimits.expect(webhookId, now);
    }
    if (planned.length > 0) wake();
  }

  function track(work: Promise<void>): void {
    running.add(work);
    inBackground(
      log,
      "delivery",
      work.finally(() => running.delete(work)),
    );
  }

  /** Resolves after the time, or as soon as the loop was woken since the start of its round. */
  async function waitFor(ms: number): Promise<void> {
    const timer = setTimeout(wake, ms);
    await Promise.race([awake.promise, stopped.promise]);
    clearTimeout(timer);
  }

  return {
    async plan(events, asOf) {
      await receivers.untilRevision(asOf, receiversTimeoutMs);
      const planned = planDeliveries(events, receivers.subscribersOf, { dueAt: clock.now(), newId: deps.newId });
      const rounds = new Set<string>();
      startedByRounds.add(rounds);
      return {
        planned: newDeliveries(planned.map(newDelivery)),
        ended(inserted) {
          startedByRounds.delete(rounds);
          begin(planned, { inserted, rounds });
        },
      };
    },
    async stop() {
      for (const watch of watching) watch.close();
      stopping.abort(new Error("the controller stops"));
      await looping;
      await Promise.race([Promise.allSettled(running), delay(stopGraceMs)]);
      abortAttempts.abort(new Error("the controller stops"));
      await Promise.allSettled(running);
    },
  };
}

/** The deliveries of events to their subscribers. */
export function planDeliveries(
  events: readonly EventEntry[],
  subscribersOf: (event: EventEntry) => readonly string[],
  { dueAt, newId }: { readonly dueAt: number; readonly newId: () => string },
): WaitingDelivery[] {
  return events.flatMap((event) =>
    subscribersOf(event).map((webhookId) => ({ id: newId(), webhookId, attempt: 1, dueAt, event })),
  );
}

/** The row of a delivery for the statement that inserts its event. */
export function newDelivery({ id, webhookId, dueAt, event }: WaitingDelivery): NewDelivery {
  return { id, webhookId, dueAt, eventId: event.id };
}
