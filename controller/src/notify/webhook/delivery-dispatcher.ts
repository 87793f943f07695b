import { setTimeout as delay } from "node:timers/promises";
import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { EntryPlanner } from "#kernel/outbox/entry-planner.ts";
import { backOffMs } from "@holdfast/common/back-off.ts";
import type { Ownership } from "#kernel/runtime/ownership.ts";
import { createAttemptRecorder } from "./attempt-recorder.ts";
import { type Deliveries, newDeliveries, type WaitingDelivery } from "./deliveries.ts";
import { type AttemptDeps, attemptDelivery } from "./delivery-attempt.ts";
import type { SlotLimits } from "./endpoint-share.ts";
import { createEndpointSlots } from "./endpoint-slots.ts";
import { newDelivery, planDeliveries } from "./planned-delivery.ts";
import type { Receivers } from "./receiver.ts";

/** Brings events to those that get them. All that waits is in the history: whoever comes after a crash goes on with it. */
export interface DeliveryDispatcher extends EntryPlanner {
  /** Begins no attempt any more, and gives those in flight a second. */
  stop(): Promise<void>;
}

interface Deps extends AttemptDeps {
  readonly receivers: Receivers;
  readonly deliveries: Deliveries;
  readonly ownership: Ownership;
  readonly random: () => number;
  readonly log: Log;
  readonly limits?: SlotLimits;
}

/** The controller that moves the outbox delivers too: so it has in hand what has just come. */
const ownershipKey = "outbox";
/** Redeliveries are seen so late. */
const pollMs = 1_000;
const stopGraceMs = 1_000;
/** How long the memory of receivers may lag behind an event before the event waits. */
const reachedMs = 1_000;

/** It begins by itself. One loop takes from the history, so that nothing is taken twice. */
export function createDeliveryDispatcher(deps: Deps): DeliveryDispatcher {
  const { receivers, deliveries, ownership, clock, log } = deps;
  const stopping = new AbortController();
  const cut = new AbortController();
  const running = new Set<Promise<void>>();
  const slots = createEndpointSlots((id) => receivers.get(id)?.organizationId, deps.limits);
  const recorder = createAttemptRecorder({ ...deps, signal: cut.signal });
  let awake = Promise.withResolvers<void>();
  let ours = false;
  let repeatsAt = 0;

  const wake = () => awake.resolve();
  const stopped = Promise.withResolvers<void>();
  stopping.signal.addEventListener("abort", () => stopped.resolve(), { once: true });
  const watching = [ownership.subscribe(wake), receivers.subscribe(receiverChanged)];
  const looping = loop();

  function receiverChanged(id: string): void {
    if (receivers.get(id)?.isActive === true) return;
    slots.remove(id);
    if (ours) deliveries.forget(id).catch((error) => log.warn("deliveries not dropped", { error: String(error) }));
  }

  async function loop(): Promise<void> {
    // Receivers that are not known yet must not be passed over.
    await Promise.race([receivers.ready, stopped.promise]);
    let failures = 0;
    while (!stopping.signal.aborted) {
      awake = Promise.withResolvers();
      try {
        const more = await round();
        failures = 0;
        if (!more) await waitFor(Math.min(pollMs, Math.max(0, slots.nextAt() - clock.now())));
      } catch (error) {
        if (stopping.signal.aborted) return;
        failures += 1;
        if (failures === 1) log.warn("deliveries wait", { error: String(error) });
        await waitFor(backOffMs(failures, deps.random, { maxMs: 5_000 }));
      }
    }
  }

  /** True when there may be more to do at once. */
  async function round(): Promise<boolean> {
    const right = ownership.begin(ownershipKey);
    if (right === undefined) {
      ours = false;
      return false;
    }
    try {
      if (!ours) for (const id of receivers.ids()) slots.expect(id, 0);
      ours = true;
      await takeRepeats();
      return await beginWaiting();
    } finally {
      right.end();
    }
  }

  async function takeRepeats(): Promise<void> {
    const now = clock.now();
    if (now < repeatsAt) return;
    for (const webhookId of await deliveries.takeRepeats(now)) slots.expect(webhookId, now);
    repeatsAt = now + pollMs;
  }

  /** Begins what is due and has room, out of the history. */
  async function beginWaiting(): Promise<boolean> {
    const rooms = slots.take(clock.now());
    if (rooms.length === 0) return false;
    let next: WaitingDelivery[];
    try {
      next = await deliveries.next(rooms, slots.inFlight(rooms));
    } catch (error) {
      for (const { webhookId } of rooms) slots.expect(webhookId, 0);
      throw error;
    } finally {
      slots.release(rooms);
    }
    const now = clock.now();
    const begun = new Map<string, number>();
    for (const delivery of next) {
      const { webhookId, dueAt } = delivery;
      if (dueAt > now) slots.expect(webhookId, dueAt);
      else {
        begun.set(webhookId, (begun.get(webhookId) ?? 0) + 1);
        slots.begin(webhookId, delivery.id);
        track(attempt(delivery));
      }
    }
    // As much as was asked for: there may be more behind it.
    for (const { webhookId, room } of rooms) if (begun.get(webhookId) === room) slots.expect(webhookId, 0);
    return begun.size > 0;
  }

  async function attempt(delivery: WaitingDelivery): Promise<void> {
    const { id, webhookId } = delivery;
    const receiver = receivers.get(webhookId);
    let succeeded = false;
    try {
      // Deleted or switched off meanwhile: what waits for it is dropped.
      if (receiver === undefined || !receiver.isActive) return await deliveries.forget(webhookId);
      const ended = await attemptDelivery(receiver, delivery, deps, cut.signal);
      const failingSince = await recorder.record(ended);
      succeeded = ended.errorMessage === null;
      if (ended.nextDueAt !== null) slots.expect(webhookId, ended.nextDueAt);
      if (failingSince !== null) await receivers.failing(webhookId, failingSince, cut.signal);
    } catch (error) {
      if (cut.signal.aborted) return;
      log.error("delivery not finished", { webhook: webhookId, error });
      slots.expect(webhookId, clock.now() + pollMs);
    } finally {
      slots.end(webhookId, id, succeeded);
      wake();
    }
  }

  /** Begins what has room at once of deliveries that were just made. */
  function begin(planned: readonly WaitingDelivery[], made: ReadonlySet<string>, now: number): void {
    let some = false;
    for (const delivery of planned) {
      const { id, webhookId } = delivery;
      // What was there already was begun, or is found in the history.
      if (!made.has(id)) continue;
      some = true;
      if (!stopping.signal.aborted && slots.tryBegin(webhookId, id, now)) track(attempt(delivery));
      else slots.expect(webhookId, now);
    }
    if (some) wake();
  }

  function track(work: Promise<void>): void {
    running.add(work);
    inBackground(
      log,
      "delivery",
      work.finally(() => running.delete(work)),
    );
  }

  /** Resolves after the time, or earlier when something woke the loop since its round began. */
  async function waitFor(ms: number): Promise<void> {
    const timer = setTimeout(wake, ms);
    await Promise.race([awake.promise, stopped.promise]);
    clearTimeout(timer);
  }

  return {
    async plan(events, asOf) {
      await receivers.reached(asOf, reachedMs);
      const now = clock.now();
      const planned = planDeliveries(events, receivers.wanting, { dueAt: now, newId: deps.newId });
      return { planned: newDeliveries(planned.map(newDelivery)), inserted: (made) => begin(planned, made, now) };
    },
    async stop() {
      for (const watch of watching) watch.close();
      stopping.abort(new Error("the controller stops"));
      await looping;
      await Promise.race([Promise.allSettled(running), delay(stopGraceMs)]);
      cut.abort(new Error("the controller stops"));
      await Promise.allSettled(running);
    },
  };
}
