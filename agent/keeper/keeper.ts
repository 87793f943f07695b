import { keeperProtocol } from "@holdfast/common/keeper-protocol.ts";
import { type Component, type ComponentDeps, createComponent } from "./component.ts";
import { requireName, requireSignal, requireSpec, requireTime } from "./component-spec.ts";
import type { ComponentSpec, ComponentStatus, KeeperReply, KeeperRequest } from "./keeper-protocol.ts";
import { type Caller, createKeeperServer } from "./keeper-server.ts";
import { firstThreadCpuMs } from "./proc-table.ts";
import { createRestarts } from "./restarts.ts";
import { agentSlots, createSuccession } from "./succession.ts";

export interface KeeperDeps extends Omit<ComponentDeps, "role" | "onChange"> {
  readonly socketPath: string;
  /** Where logs are, whatever an agent asks for. */
  readonly logDirectory: string;
  /** The agent itself, started first and again whenever it ends, until another one takes its place. */
  readonly agent: ComponentSpec | undefined;
  /** What runs the agent of this file instead; throws when it is none that the machine's agent may name. */
  readonly successorOf: (main: string) => ComponentSpec;
  readonly note: (message: string, fields: object) => void;
}

export interface Keeper {
  start(): Promise<void>;
  /** Stops every component in order, the agent last. */
  stop(): Promise<void>;
}

/** An engine, its companions and one program: whoever asks for so many asks for names. */
const mostComponents = 32;

/** Owns the machine's processes. Agents come and go; what runs stays. */
export function createKeeper(deps: KeeperDeps): Keeper {
  const { agent, note } = deps;
  const components = new Map<string, Component>();
  let stopping = false;
  const isAgent = (name: string) => agentSlots.some((slot) => slot === name);
  const succession =
    agent === undefined
      ? undefined
      : createSuccession({
          ...deps,
          agent,
          component,
          restarts: createRestarts(deps.now),
          monotonicMs: deps.bootMs,
        });

  function component(name: string): Component {
    const known = components.get(name);
    if (known !== undefined) return known;
    const made = createComponent(name, { ...deps, role: isAgent(name) ? "agent" : "engine", onChange });
    components.set(name, made);
    return made;
  }

  function onChange(status: ComponentStatus): void {
    note("component changed", { ...status });
    server.broadcast({ event: "component", component: status });
    succession?.changed(status);
  }

  async function answer(request: KeeperRequest, caller: Caller): Promise<KeeperReply> {
    const gapMs = await perform(request, caller);
    const told = [...components.values()].map((each) => each.status);
    const all = request.op === "status" ? told.map(withCpuTime) : told;
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
        return commanded(caller, request.component.name).start(request.component);
      case "stop":
        requireSignal(request.signal);
        return commanded(caller, request.name).stop(request.signal, request.graceMs);
      case "signal":
        requireSignal(request.signal);
        return commanded(caller, request.name).signal(request.signal);
      case "extend":
        requireTime(request.untilMs);
        return commanded(caller, request.name).extend(request.number, request.leftMs, request.untilMs);
      case "status":
        return;
      case "claim":
        return agents().claim(caller, request.run);
      case "offer":
        return agents().offer(caller, request.main, request.controller);
      case "ready":
        return agents().ready(caller, request.run);
      case "yield":
        return agents().yield(caller, request.state);
      case "settled":
        return agents().settled(caller, request.run);
      case "withdraw":
        return agents().withdraw(caller);
      default:
        throw new Error("unknown request");
    }
  }

  /** The component, for whoever is in charge. The agents are the keeper's own affair. */
  function commanded(caller: Caller, name: unknown): Component {
    requireName(name);
    if (succession?.mayOrder(caller) === false) throw new Error("another agent is in charge");
    if (agent !== undefined && isAgent(name)) throw new Error(`${name} is the keeper's own`);
    if (!components.has(name) && components.size >= mostComponents) throw new Error("there are too many components");
    return component(name);
  }

  function agents() {
    if (succession === undefined || stopping) throw new Error("this keeper runs no agent");
    return succession;
  }

  const server = createKeeperServer(deps.socketPath, deps.owner, answer);

  async function stopOne(each: Component): Promise<void> {
    const { signal, graceMs } = each.spec?.stop ?? { signal: "SIGTERM", graceMs: 0 };
    await each.stop(signal, graceMs);
  }

  return {
    async start() {
      await server.listen();
      await succession?.start();
    },
    async stop() {
      stopping = true;
      succession?.stop();
      const all = [...components.values()];
      // What was started last leans on what was there before it.
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
