import { randomUUID } from "node:crypto";
import type { Component } from "./component.ts";
import type { ComponentSpec, ComponentStatus } from "./keeper-protocol.ts";
import type { Caller } from "./keeper-server.ts";
import type { Restarts } from "./restarts.ts";

/** Names of the two places that an agent runs in: the next one always in the one that is free. */
export const agentSlots = ["agent", "agent-next"] as const;
type Slot = (typeof agentSlots)[number];

export interface SuccessionDeps {
  /** The agent that the machine was started with. */
  readonly agent: ComponentSpec;
  /** What runs the agent of this file; throws when it is none that the keeper runs. */
  readonly successorOf: (main: string) => ComponentSpec;
  readonly component: (slot: Slot) => Component;
  readonly restarts: Restarts;
  readonly now: () => number;
  readonly monotonicMs: () => number;
  readonly note: (message: string, fields: object) => void;
}

/**
 * The machine's agents: one that is started again whenever it ends, and now and then a next one beside it that takes its
 * place. Exactly one is in charge, or none; whoever dies, hangs or comes too late, one is left that is started again.
 */
export interface Succession {
  start(): Promise<void>;
  /** Nothing is started any more. */
  stop(): void;
  /** An agent's process changed. */
  changed(status: ComponentStatus): void;
  /** May this connection have components started and stopped? Anybody may while nobody claimed. */
  mayOrder(caller: Caller): boolean;
  claim(caller: Caller, run: string): void;
  offer(caller: Caller, main: string, controller: string): Promise<void>;
  ready(caller: Caller, run: string): void;
  /** Resolves with the milliseconds in which nobody was in charge. */
  yield(caller: Caller, state: string): Promise<number>;
  settled(caller: Caller, run: string): number;
  withdraw(caller: Caller): Promise<void>;
}

interface Run {
  readonly slot: Slot;
  readonly spec: ComponentSpec;
  readonly id: string;
  caller: Caller | undefined;
}

interface Next extends Run {
  isReady: boolean;
  /** Since it is in charge, and not settled yet. */
  handOver: { readonly atMs: number; readonly done: PromiseWithResolvers<number>; timer: NodeJS.Timeout } | undefined;
  /** Why it was ended from here. */
  reason: string;
}

/** So long nobody may be there who could extend a right. */
const settleWithinMs = 1_000;
/** What gave way has this long to leave by itself. */
const leaveWithinMs = 2_000;
/** A successor that ends this soon after it took over is not started again: its predecessor goes on. */
const probationMs = 60_000;

export function createSuccession(deps: SuccessionDeps): Succession {
  const { successorOf, component, restarts, now, monotonicMs, note } = deps;
  let current: Run = { slot: "agent", spec: deps.agent, id: "", caller: undefined };
  let next: Next | undefined;
  /** What gave way, as long as what took its place may turn out to be no good. */
  let before: { readonly spec: ComponentSpec; readonly untilMs: number } | undefined;
  let stopping = false;

  const isEmpty = (slot: Slot) => component(slot).status.state === "empty";
  const specOf = (spec: ComponentSpec, slot: Slot, env: Readonly<Record<string, string>>): ComponentSpec => ({
    ...spec,
    name: slot,
    env: { ...spec.env, ...env },
    log: { ...spec.log, path: spec.log.path.replace(/[^/]*$/, `${slot}.log`) },
  });

  function launch(): void {
    if (stopping || !isEmpty(current.slot)) return;
    current = { ...current, id: randomUUID(), caller: undefined };
    const { slot, spec, id } = current;
    component(slot)
      .start(specOf(spec, slot, { HOLDFAST_AGENT_RUN: id, HOLDFAST_AGENT_PART: "current" }))
      .catch((error: Error) => {
        note("agent not started", { error: error.message });
        relaunch(component(slot).status);
      });
  }

  function relaunch({ startedAt }: ComponentStatus): void {
    if (before !== undefined && monotonicMs() < before.untilMs) {
      note("the agent of before goes on", { slot: current.slot });
      current = { ...current, spec: before.spec };
    }
    before = undefined;
    setTimeout(launch, restarts.delayAfter(startedAt));
  }

  /** It ends, and `changed` says what that leads to. */
  function end(run: Next, reason: string): Promise<void> {
    run.reason ||= reason;
    return component(run.slot).stop("SIGKILL", 0);
  }

  function drop(run: Next, reason: string): void {
    end(run, reason).catch((error: Error) => note("next agent not ended", { slot: run.slot, reason: error.message }));
  }

  function nextIsGone(gone: Next, { exit }: ComponentStatus): void {
    next = undefined;
    const reason = gone.reason || `It ended with ${exit?.signal ?? exit?.code ?? "an unknown end"}.`;
    note("next agent is gone", { slot: gone.slot, reason });
    if (gone.handOver !== undefined) {
      clearTimeout(gone.handOver.timer);
      gone.handOver.done.reject(new Error(reason));
    } else current.caller?.send({ event: "successor", state: "gone", reason });
    // It may have ended while the other one was in charge.
    if (isEmpty(current.slot)) relaunch(component(current.slot).status);
  }

  function currentIsGone(status: ComponentStatus): void {
    current.caller = undefined;
    // With the other one in charge it is not known yet whose turn it is.
    if (next?.handOver !== undefined) return;
    if (next !== undefined) drop(next, "The agent that started it ended.");
    else relaunch(status);
  }

  function requireCharge(caller: Caller): void {
    if (current.caller !== caller || next?.handOver !== undefined) throw new Error("this agent is not in charge");
  }

  function requireNext(run: string): Next {
    if (next === undefined || next.id !== run || next.reason !== "") throw new Error("this agent is not the next one");
    return next;
  }

  return {
    async start() {
      // What an earlier keeper left of either is gone before one is started.
      for (const slot of agentSlots) await component(slot).sweep();
      launch();
    },
    stop() {
      stopping = true;
    },
    changed(status) {
      if (status.state !== "empty") return;
      if (next?.slot === status.name) nextIsGone(next, status);
      else if (current.slot === status.name) currentIsGone(status);
    },
    mayOrder(caller) {
      const holder = next?.handOver === undefined ? current.caller : next.caller;
      return holder === undefined || holder === caller;
    },
    claim(caller, run) {
      if (run !== current.id || next?.handOver !== undefined) throw new Error("another agent is in charge");
      current.caller = caller;
    },
    async offer(caller, main, controller) {
      requireCharge(caller);
      const slot = current.slot === "agent" ? "agent-next" : "agent";
      if (next !== undefined || !isEmpty(slot)) throw new Error("there is another agent beside this one already");
      const spec = successorOf(main);
      const offered: Next = {
        slot,
        spec,
        id: randomUUID(),
        caller: undefined,
        isReady: false,
        handOver: undefined,
        reason: "",
      };
      next = offered;
      before = undefined;
      try {
        const env = { HOLDFAST_AGENT_PART: "next", HOLDFAST_AGENT_CONTROLLER: controller };
        await component(slot).start(specOf(spec, slot, { ...env, HOLDFAST_AGENT_RUN: offered.id }));
      } catch (error) {
        if (next === offered) next = undefined;
        if (isEmpty(current.slot)) relaunch(component(current.slot).status);
        throw error;
      }
      // Its process may be there only now that nobody wants it any more.
      if (offered.reason !== "") await end(offered, offered.reason);
    },
    ready(caller, run) {
      const to = requireNext(run);
      to.caller = caller;
      to.isReady = true;
      current.caller?.send({ event: "successor", state: "ready", reason: "" });
    },
    async yield(caller, state) {
      requireCharge(caller);
      const to = next;
      if (to?.caller === undefined || !to.isReady || to.reason !== "") throw new Error("no other agent is ready");
      const timer = setTimeout(() => drop(to, "It did not take over in time."), settleWithinMs);
      to.handOver = { atMs: monotonicMs(), done: Promise.withResolvers<number>(), timer };
      to.caller.send({ event: "charge", state });
      return to.handOver.done.promise;
    },
    settled(caller, run) {
      const to = requireNext(run);
      const { handOver } = to;
      if (handOver === undefined || to.caller !== caller) throw new Error("this agent is not in charge");
      clearTimeout(handOver.timer);
      const gapMs = Math.round(monotonicMs() - handOver.atMs);
      const old = current;
      before = { spec: old.spec, untilMs: monotonicMs() + probationMs };
      current = { slot: to.slot, spec: to.spec, id: to.id, caller };
      next = undefined;
      note("agent handed over", { from: old.slot, to: to.slot, gapMs, at: now() });
      handOver.done.resolve(gapMs);
      setTimeout(() => {
        if (current.slot !== old.slot && next?.slot !== old.slot)
          component(old.slot)
            .stop("SIGTERM", leaveWithinMs)
            .catch((error: Error) => note("agent not ended", { slot: old.slot, reason: error.message }));
      }, leaveWithinMs).unref();
      return gapMs;
    },
    async withdraw(caller) {
      requireCharge(caller);
      if (next !== undefined) await end(next, "It was withdrawn.");
    },
  };
}
