import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "@holdfast/common/log.ts";
import type { Deliveries, WaitingDelivery } from "../history/deliveries.ts";
import { backOffMs } from "../runtime/back-off.ts";
import type { Ownership } from "../runtime/ownership.ts";
import { createAttemptRecorder } from "./attempt-recorder.ts";
import { type AttemptDeps, attemptDelivery } from "./delivery-attempt.ts";
import { createEndpointSlots, type SlotLimits } from "./endpoint-slots.ts";
import { type SwitchOffDeps, switchOffIfDead } from "./switch-off.ts";
import { wantsEvent } from "./webhook.ts";

/** Brings events to webhook endpoints. All that waits is in the history: whoever comes after a crash goes on with it. */
export interface DeliveryDispatcher {
  /** There are new events in the history. */
  wake(): void;
  /** Begins no attempt any more, and gives those in flight a second. */
  stop(): Promise<void>;
}

interface Deps extends AttemptDeps, SwitchOffDeps {
  readonly deliveries: Deliveries;
  readonly ownership: Ownership;
  readonly random: () => number;
  readonly log: Log;
  readonly limits?: SlotLimits;
}

/** The controller that moves the outbox delivers too: so it knows at once that there is something. */
const ownershipKey = "outbox";
const fanOutMax = 200;
/** Redeliveries that another controller took are seen so late. */
const pollMs = 1_000;
const stopGraceMs = 1_000;

/** It begins by itself. Resolved promises aside, one loop does it all, so that nothing is taken twice. */
export function createDeliveryDispatcher(deps: Deps): DeliveryDispatcher {
  const { webhooks, deliveries, ownership, clock, log } = deps;
  const stopping = new AbortController();
  const cut = new AbortController();
  const running = new Set<Promise<void>>();
  const slots = createEndpointSlots((id) => webhooks.get(id)?.object.metadata.organizationId, deps.limits);
  const recorder = createAttemptRecorder({ ...deps, signal: cut.signal });
  let awake = Promise.withResolvers<void>();
  let ours = false;

  const wake = () => awake.resolve();
  const watching = [ownership.subscribe(wake), webhooks.subscribe(webhookChanged)];
  const looping = loop();

  function webhookChanged(id: string): void {
    if (webhooks.get(id)?.object.spec.active === true) return;
    slots.remove(id);
    if (ours) deliveries.forget(id).catch((error) => log.warn("deliveries not dropped", { error: String(error) }));
  }

  async function loop(): Promise<void> {
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
      if (!ours) for (const { object } of webhooks.values()) slots.expect(object.metadata.id, 0);
      ours = true;
      const spread = await spreadEvents();
      const begun = await beginAttempts();
      return spread || begun;
    } finally {
      right.end();
    }
  }

  /** Makes deliveries of the events that came. */
  async function spreadEvents(): Promise<boolean> {
    const waiting = await deliveries.fanOut(fanOutMax);
    if (waiting.length === 0) return false;
    const now = clock.now();
    const all = [...webhooks.values()].map(({ object }) => object);
    const made = waiting.flatMap(({ place, webhookId, event }) =>
      all
        .filter((webhook) =>
          webhookId === null ? wantsEvent(webhook, event) : webhook.metadata.id === webhookId && webhook.spec.active,
        )
        .map(({ metadata }) => ({
          place,
          webhookId: metadata.id,
          eventId: event.id,
          occurredAt: event.occurredAt,
          dueAt: now,
        })),
    );
    await deliveries.spread(
      waiting.map(({ place }) => place),
      made,
    );
    for (const { webhookId } of made) slots.expect(webhookId, 0);
    return waiting.length === fanOutMax;
  }

  /** Begins what is due and has room. */
  async function beginAttempts(): Promise<boolean> {
    const rooms = slots.take(clock.now());
    if (rooms.length === 0) return false;
    let next: WaitingDelivery[];
    try {
      next = await deliveries.next(rooms, slots.inFlight());
    } catch (error) {
      for (const { webhookId } of rooms) slots.expect(webhookId, 0);
      throw error;
    }
    const now = clock.now();
    const due = next.filter(({ dueAt }) => dueAt <= now);
    for (const { webhookId, dueAt } of next) if (dueAt > now) slots.expect(webhookId, dueAt);
    for (const { webhookId, room } of rooms) {
      // As much as was asked for: there may be more behind it.
      if (due.filter((delivery) => delivery.webhookId === webhookId).length === room) slots.expect(webhookId, 0);
    }
    for (const delivery of due) track(attempt(delivery));
    return due.length > 0;
  }

  async function attempt(delivery: WaitingDelivery): Promise<void> {
    const { id, webhookId } = delivery;
    const webhook = webhooks.get(webhookId)?.object;
    // Deleted or switched off meanwhile: what waits for it is dropped.
    if (webhook === undefined || !webhook.spec.active) return;
    slots.begin(webhookId, id);
    let succeeded = false;
    try {
      const ended = await attemptDelivery(webhook, delivery, deps, cut.signal);
      const failingSince = await recorder.record(ended);
      succeeded = ended.errorMessage === null;
      if (ended.nextDueAt !== null) slots.expect(webhookId, ended.nextDueAt);
      await switchOffIfDead(webhookId, failingSince, deps, cut.signal);
    } catch (error) {
      if (cut.signal.aborted) return;
      log.error("delivery not finished", { webhook: webhookId, error });
      slots.expect(webhookId, clock.now() + pollMs);
    } finally {
      slots.end(webhookId, id, succeeded);
      wake();
    }
  }

  function track(work: Promise<void>): void {
    running.add(work);
    void work.finally(() => running.delete(work));
  }

  /** Resolves after the time, or earlier when something woke the loop since its round began. */
  async function waitFor(ms: number): Promise<void> {
    const timer = new AbortController();
    const signal = AbortSignal.any([timer.signal, stopping.signal]);
    const time = delay(ms, undefined, { signal }).catch(() => undefined);
    await Promise.race([awake.promise, time]);
    timer.abort();
  }

  return {
    wake,
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
