import { randomUUID } from "node:crypto";
import type { Component } from "./component.ts";
import type { ComponentSpec, ComponentStatus } from "./keeper-protocol.ts";
import type { Caller } from "./keeper-server.ts";
import type { RestartBackOff } from "./restart-back-off.ts";

/** Component names of the two slots that agents run in. The new agent always starts in the free slot. */
export const agentSlots = ["agent", "agent-next"] as const;
type Slot = (typeof agentSlots)[number];

export interface AgentHandoverDeps {
  /** The agent that the machine starts with. */
  readonly agent: ComponentSpec;
  /** Component of the agent in this file; throws for a file that is not an agent of this machine. */
  readonly specOfMain: (main: string) => ComponentSpec;
  readonly component: (slot: Slot) => Component;
  readonly restarts: RestartBackOff;
  readonly now: () => number;
  readonly monotonicMs: () => number;
  readonly note: (message: string, fields: object) => void;
}

/**
 * Runs the machine's agents: one that is restarted whenever it ends and, during an upgrade, a second one that takes
 * over. At most one agent is in charge. Handover: the agent in charge sends `offer`, the new one `ready`; the old one
 * `yield`, the new one `settled`. If the new agent crashes, hangs or exceeds a time limit, it is killed and the old one
 * remains in charge.
 */
export interface AgentHandover {
  start(): Promise<void>;
  /** Starts no agent any more. */
  stop(): void;
  /** Handles a change of an agent's process. */
  changed(status: ComponentStatus): void;
  /** True if this connection may start and stop components: the agent in charge, or any while none has claimed. */
  isInCharge(caller: Caller): boolean;
  claim(caller: Caller, run: string): void;
  offer(caller: Caller, main: string, controller: string): Promise<void>;
  ready(caller: Caller, run: string): void;
  /** Resolves with the milliseconds during which no agent was in charge. */
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

interface NextRun extends Run {
  isReady: boolean;
  /** Set while the new agent is in charge and not settled yet. */
  handover: { readonly atMs: number; readonly done: PromiseWithResolvers<number>; timer: NodeJS.Timeout } | undefined;
  /** Reason why the keeper killed the run; empty if it did not. */
  reason: string;
}

/** Longest time without an agent that could extend the engine's deadline; a primary lease lasts 6 s. */
const settleWithinMs = 1_000;
/** Time limit for the old agent to exit by itself. */
const exitWithinMs = 2_000;
/** If a new agent ends within this time after it took over, the old release is started again instead. */
const probationMs = 60_000;

export function createAgentHandover(deps: AgentHandoverDeps): AgentHandover {
  const { specOfMain, component, restarts, now, monotonicMs, note } = deps;
  let current: Run = { slot: "agent", spec: deps.agent, id: "", caller: undefined };
  let next: NextRun | undefined;
  /** The replaced agent, while the new one is on probation. */
  let previous: { readonly spec: ComponentSpec; readonly untilMs: number } | undefined;
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
    if (previous !== undefined && monotonicMs() < previous.untilMs) {
      note("previous agent is started again", { slot: current.slot });
      current = { ...current, spec: previous.spec };
    }
    previous = undefined;
    setTimeout(launch, restarts.delayAfter(startedAt));
  }

  /** Kills the new agent; `changed` handles its end. */
  function end(run: NextRun, reason: string): Promise<void> {
    run.reason ||= reason;
    return component(run.slot).stop("SIGKILL", 0);
  }

  function drop(run: NextRun, reason: string): void {
    end(run, reason).catch((error: Error) => note("next agent not ended", { slot: run.slot, reason: error.message }));
  }

  function onNextEnded(ended: NextRun, { exit }: ComponentStatus): void {
    next = undefined;
    const reason = ended.reason || `It ended with ${exit?.signal ?? exit?.code ?? "an unknown exit status"}.`;
    note("next agent ended", { slot: ended.slot, reason });
    if (ended.handover !== undefined) {
      clearTimeout(ended.handover.timer);
      ended.handover.done.reject(new Error(reason));
    } else current.caller?.send({ event: "successor", state: "gone", reason });
    // The old agent may have ended while the new one was in charge.
    if (isEmpty(current.slot)) relaunch(component(current.slot).status);
  }

  function onCurrentEnded(status: ComponentStatus): void {
    current.caller = undefined;
    // While the new agent is in charge and not settled, the outcome of the handover is open.
    if (next?.handover !== undefined) return;
    if (next !== undefined) drop(next, "The agent that started it ended.");
    else relaunch(status);
  }

  function requireInCharge(caller: Caller): void {
    if (current.caller !== caller || next?.handover !== undefined) throw new Error("this agent is not in charge");
  }

  function requireNext(run: string): NextRun {
    if (next === undefined || next.id !== run || next.reason !== "") throw new Error("this agent is not the next one");
    return next;
  }

  return {
    async start() {
      // Processes of agents by an earlier keeper end before one is started.
      for (const slot of agentSlots) await component(slot).sweep();
      launch();
    },
    stop() {
      stopping = true;
    },
    changed(status) {
      if (status.state !== "empty") return;
      if (next?.slot === status.name) onNextEnded(next, status);
      else if (current.slot === status.name) onCurrentEnded(status);
    },
    isInCharge(caller) {
      const inCharge = next?.handover === undefined ? current.caller : next.caller;
      return inCharge === undefined || inCharge === caller;
    },
    claim(caller, run) {
      if (run !== current.id || next?.handover !== undefined) throw new Error("another agent is in charge");
      current.caller = caller;
    },
    async offer(caller, main, controller) {
      requireInCharge(caller);
      const slot = current.slot === "agent" ? "agent-next" : "agent";
      if (next !== undefined || !isEmpty(slot)) throw new Error("there is another agent beside this one already");
      const spec = specOfMain(main);
      const offered: NextRun = {
        slot,
        spec,
        id: randomUUID(),
        caller: undefined,
        isReady: false,
        handover: undefined,
        reason: "",
      };
      next = offered;
      previous = undefined;
      try {
        const env = { HOLDFAST_AGENT_PART: "next", HOLDFAST_AGENT_CONTROLLER: controller };
        await component(slot).start(specOf(spec, slot, { ...env, HOLDFAST_AGENT_RUN: offered.id }));
      } catch (error) {
        if (next === offered) next = undefined;
        if (isEmpty(current.slot)) relaunch(component(current.slot).status);
        throw error;
      }
      // The offer may have been withdrawn before the new agent's process existed.
      if (offered.reason !== "") await end(offered, offered.reason);
    },
    ready(caller, run) {
      const to = requireNext(run);
      to.caller = caller;
      to.isReady = true;
      current.caller?.send({ event: "successor", state: "ready", reason: "" });
    },
    async yield(caller, state) {
      requireInCharge(caller);
      const to = next;
      if (to?.caller === undefined || !to.isReady || to.reason !== "") throw new Error("no other agent is ready");
      const timer = setTimeout(() => drop(to, "It did not take over in time."), settleWithinMs);
      to.handover = { atMs: monotonicMs(), done: Promise.withResolvers<number>(), timer };
      to.caller.send({ event: "charge", state });
      return to.handover.done.promise;
    },
    settled(caller, run) {
      const to = requireNext(run);
      const { handover } = to;
      if (handover === undefined || to.caller !== caller) throw new Error("this agent is not in charge");
      clearTimeout(handover.timer);
      const gapMs = Math.round(monotonicMs() - handover.atMs);
      const old = current;
      previous = { spec: old.spec, untilMs: monotonicMs() + probationMs };
      current = { slot: to.slot, spec: to.spec, id: to.id, caller };
      next = undefined;
      note("agent handed over", { from: old.slot, to: to.slot, gapMs, at: now() });
      handover.done.resolve(gapMs);
      setTimeout(() => {
        if (current.slot !== old.slot && next?.slot !== old.slot)
          component(old.slot)
            .stop("SIGTERM", exitWithinMs)
            .catch((error: Error) => note("agent not ended", { slot: old.slot, reason: error.message }));
      }, exitWithinMs).unref();
      return gapMs;
    },
    async withdraw(caller) {
      requireInCharge(caller);
      if (next !== undefined) await end(next, "It was withdrawn.");
    },
  };
}
