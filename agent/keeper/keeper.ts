import { type Component, type ComponentDeps, createComponent } from "./component.ts";
import type { ComponentSpec, ComponentStatus, KeeperReply, KeeperRequest } from "./keeper-protocol.ts";
import { createKeeperServer } from "./keeper-server.ts";
import { createRestarts } from "./restarts.ts";

export interface KeeperDeps extends Omit<ComponentDeps, "role" | "onChange"> {
  readonly socketPath: string;
  /** The agent itself, started first and again whenever it ends. */
  readonly agent: ComponentSpec | undefined;
  readonly note: (message: string, fields: object) => void;
}

export interface Keeper {
  start(): Promise<void>;
  /** Stops every component in order, the agent last. */
  stop(): Promise<void>;
}

/** Owns the machine's processes. Agents come and go; what runs stays. */
export function createKeeper(deps: KeeperDeps): Keeper {
  const { agent, note } = deps;
  const components = new Map<string, Component>();
  const restarts = createRestarts(deps.now);
  let stopping = false;

  function component(name: string): Component {
    const known = components.get(name);
    if (known !== undefined) return known;
    const made = createComponent(name, { ...deps, role: name === agent?.name ? "agent" : "engine", onChange });
    components.set(name, made);
    return made;
  }

  function onChange(status: ComponentStatus): void {
    note("component changed", { ...status });
    server.broadcast({ event: "component", component: status });
    if (status.name === agent?.name && status.state === "empty") restartAgent(status);
  }

  function restartAgent(status: ComponentStatus): void {
    if (stopping || agent === undefined) return;
    const delayMs = restarts.delayAfter(status.startedAt);
    setTimeout(() => {
      if (!stopping) startAgent(agent);
    }, delayMs);
  }

  function startAgent(spec: ComponentSpec): void {
    component(spec.name)
      .start(spec)
      .catch((error: Error) => {
        note("agent not started", { error: error.message });
        restartAgent(component(spec.name).status);
      });
  }

  async function answer(request: KeeperRequest): Promise<KeeperReply> {
    await perform(request);
    return { id: request.id, ok: true, components: [...components.values()].map((each) => each.status) };
  }

  async function perform(request: KeeperRequest): Promise<void> {
    switch (request.op) {
      case "start":
        if (stopping) throw new Error("the keeper stops");
        return component(request.component.name).start(request.component);
      case "stop":
        return component(request.name).stop(request.signal, request.graceMs);
      case "signal":
        return component(request.name).signal(request.signal);
      case "extend":
        return component(request.name).extend(request.number, request.leftMs);
      case "status":
        return;
      default:
        throw new Error("unknown request");
    }
  }

  const server = createKeeperServer(deps.socketPath, deps.owner, answer);

  async function stopOne(each: Component): Promise<void> {
    const { signal, graceMs } = each.spec?.stop ?? { signal: "SIGTERM", graceMs: 0 };
    await each.stop(signal, graceMs);
  }

  return {
    async start() {
      await server.listen();
      if (agent !== undefined) startAgent(agent);
    },
    async stop() {
      stopping = true;
      const all = [...components.values()];
      // What was started last leans on what was there before it.
      for (const each of all.reverse()) if (each.status.name !== agent?.name) await stopOne(each);
      for (const each of all) if (each.status.name === agent?.name) await stopOne(each);
      server.close();
    },
  };
}
