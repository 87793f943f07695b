import { keeperProtocol } from "@holdfast/common/keeper-protocol.ts";
import { type Component, type ComponentDeps, createComponent } from "./component.ts";
import { requireName, requireSignal, requireSpec, requireDeadline } from "./component-spec.ts";
import type { ComponentSpec, ComponentStatus, KeeperReply, KeeperRequest } from "./keeper-protocol.ts";
import { type Caller, createKeeperServer } from "./keeper-server.ts";
import { firstThreadCpuMs } from "./proc-table.ts";
import { createRestartBackOff } from "./restart-back-off.ts";
import { agentSlots, createAgentHandover } from "./agent-handover.ts";

export interface KeeperDeps extends Omit<ComponentDeps, "role" | "onChange"> {
  readonly socketPath: string;
  /** Directory of all logs; an agent cannot choose another one. */
  readonly logDirectory: string;
  /** The agent, started first and restarted whenever it ends, until another agent replaces it. */
  readonly agent: ComponentSpec | undefined;
  /** Component of the agent in this file; throws for a file that the machine's agent may not name. */
  readonly specOfMain: (main: string) => ComponentSpec;
  readonly note: (message: string, fields: object) => void;
}

export interface Keeper {
  start(): Promise<void>;
  /** Stops all components in reverse order of their start, the agent last. */
  stop(): Promise<void>;
}

/** Limit for an engine, its companions, jobs and one program. */
const maxComponents = 32;

/**
 * Owns the machine's processes. The keeper is the first program of a machine. It starts the agent, and engine processes
 * ("components") on the agent's request, each in a separate sandbox. Components survive the agent: a restarted or
 * replaced agent finds them through `status`. A component with a deadline is killed when the deadline passes, which is
 * how a primary without a primary lease is fenced.
 */
export function createKeeper(deps: KeeperDeps): Keeper {
  const { agent, note } = deps;
  const components = new Map<string, Component>();
  let stopping = false;
  const isAgent = (name: string) => agentSlots.some((slot) => slot === name);
  const handover =
    agent === undefined
      ? undefined
      : createAgentHandover({
          ...deps,
          agent,
          component,
          restarts: createRestartBackOff(deps.now),
          monotonicMs: deps.bootMs,
        });

  function component(name: string): Component {
    const existing = components.get(name);
    if (existing !== undefined) return existing;
    const created = createComponent(name, { ...deps, role: isAgent(name) ? "agent" : "engine", onChange });
    components.set(name, created);
    return created;
  }

  function onChange(status: ComponentStatus): void {
    note("component changed", { ...status });
    server.broadcast({ event: "component", component: status });
    handover?.changed(status);
  }

  async function respond(request: KeeperRequest, caller: Caller): Promise<KeeperReply> {
    const gapMs = await perform(request, caller);
    const statuses = [...components.values()].map((each) => each.status);
    const all = request.op === "status" ? statuses.map(withCpuTime) : statuses;
    return {
      id: request.id,
      ok: true,
      components: all,
      protocol: keeperProtocol,
      ...(typeof gapMs === "number" ? { gapMs } : {}),
    };
  }

  async function perform(request: KeeperRequest, caller: Caller): Promise<number | void> {
    switch (request.op) {
      case "start":
        if (stopping) throw new Error("the keeper stops");
        requireSpec(request.component, deps.logDirectory);
        return componentFor(caller, request.component.name).start(request.component);
      case "stop":
        requireSignal(request.signal);
        return componentFor(caller, request.name).stop(request.signal, request.graceMs);
      case "signal":
        requireSignal(request.signal);
        return componentFor(caller, request.name).signal(request.signal);
      case "extend":
        return componentFor(caller, request.name).extend(request.number, requireDeadline(request));
      case "status":
        return;
      case "claim":
        return requireHandover().claim(caller, request.run);
      case "offer":
        return requireHandover().offer(caller, request.main, request.controller);
      case "ready":
        return requireHandover().ready(caller, request.run);
      case "yield":
        return requireHandover().yield(caller, request.state);
      case "settled":
        return requireHandover().settled(caller, request.run);
      case "withdraw":
        return requireHandover().withdraw(caller);
      default:
        throw new Error("unknown request");
    }
  }

  /** Returns the component, for the agent in charge only. Throws for agents: only the keeper manages them. */
  function componentFor(caller: Caller, name: unknown): Component {
    requireName(name);
    if (handover?.isInCharge(caller) === false) throw new Error("another agent is in charge");
    if (agent !== undefined && isAgent(name)) throw new Error(`${name} is the keeper's own`);
    if (!components.has(name) && components.size >= maxComponents) throw new Error("there are too many components");
    return component(name);
  }

  function requireHandover() {
    if (handover === undefined || stopping) throw new Error("this keeper runs no agent");
    return handover;
  }

  const server = createKeeperServer(deps.socketPath, deps.owner, respond);

  async function stopOne(each: Component): Promise<void> {
    const { signal, graceMs } = each.spec?.stop ?? { signal: "SIGTERM", graceMs: 0 };
    await each.stop(signal, graceMs);
  }

  return {
    async start() {
      await server.listen();
      await handover?.start();
    },
    async stop() {
      stopping = true;
      handover?.stop();
      const all = [...components.values()];
      // Components that were started last may depend on earlier ones.
      for (const each of all.reverse()) if (!isAgent(each.status.name)) await stopOne(each);
      for (const each of all) if (isAgent(each.status.name)) await stopOne(each);
      server.close();
    },
  };
}

function withCpuTime(status: ComponentStatus): ComponentStatus {
  const cpuMs = status.pid === null ? undefined : firstThreadCpuMs(status.pid);
  return cpuMs === undefined ? status : { ...status, cpuMs };
}
