import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import type {
  ComponentSpec,
  ComponentStatus,
  KeeperEvent,
  KeeperReply,
  KeeperRequest,
} from "../../keeper/keeper-protocol.ts";

export type KeeperResponse = Pick<Extract<KeeperReply, { ok: true }>, "gapMs">;
type WithoutId<R> = R extends KeeperRequest ? Omit<R, "id"> : never;
export type KeeperOrder = WithoutId<KeeperRequest>;

/** Events of a handover between agents. */
export type HandoverEvent = Exclude<KeeperEvent, { event: "component" }>;

/** Connection to the machine's keeper, which owns the components and outlives this agent. */
export interface KeeperClient {
  /** Version of the keeper's protocol; see keeper-protocol.ts. */
  readonly protocol: number;
  /** Last reported status of a component; undefined for one that never ran. */
  component(name: string): ComponentStatus | undefined;
  /** Sends a request. Resolves once the keeper has performed it; rejects with its error. */
  order(order: KeeperOrder): Promise<KeeperResponse>;
  /** Subscribes to changes of components. */
  subscribe(onChange: (component: ComponentStatus) => void): { close(): void };
  /** Subscribes to handover events for this agent. */
  onHandover(listener: (event: HandoverEvent) => void): { close(): void };
  close(): void;
}

/** The states of a run, in order. */
const stateOrder: readonly ComponentStatus["state"][] = ["running", "stopping", "empty"];
const retryMs = 50;
const maxWaitMs = 10_000;

/**
 * Connects to the keeper. Resolves once it has reported the status of all components. `onLost` is called if the keeper
 * ends, which ends the machine.
 */
export async function connectKeeper(path: string, onLost: () => void, signal: AbortSignal): Promise<KeeperClient> {
  const socket = await dial(path, signal);
  const components = new Map<string, ComponentStatus>();
  const listeners = new Set<(component: ComponentStatus) => void>();
  const handoverListeners = new Set<(event: HandoverEvent) => void>();
  const waiting = new Map<number, { resolve(response: KeeperResponse): void; reject(error: Error): void }>();
  let protocol = 0;
  let lastId = 0;
  let closed = false;

  function onComponent(component: ComponentStatus): void {
    components.set(component.name, component);
    for (const listener of listeners) listener(component);
  }

  /** A response may be older than an event that was sent before it, so only a newer state of a component is applied. */
  function isNewer({ name, starts, state }: ComponentStatus): boolean {
    const current = components.get(name);
    if (current === undefined || starts !== current.starts) return starts > (current?.starts ?? -1);
    return stateOrder.indexOf(state) >= stateOrder.indexOf(current.state);
  }

  createInterface({ input: socket }).on("line", (line) => {
    const message = JSON.parse(line) as KeeperReply | KeeperEvent;
    if ("event" in message) {
      if (message.event === "component") onComponent(message.component);
      else for (const listener of handoverListeners) listener(message);
      return;
    }
    const pending = waiting.get(message.id);
    waiting.delete(message.id);
    if (!message.ok) {
      pending?.reject(new Error(message.error));
      return;
    }
    for (const component of message.components) if (isNewer(component)) components.set(component.name, component);
    protocol = message.protocol;
    pending?.resolve(message.gapMs === undefined ? {} : { gapMs: message.gapMs });
  });
  socket.on("close", () => {
    for (const { reject } of waiting.values()) reject(new Error("the keeper has ended"));
    waiting.clear();
    if (!closed) onLost();
  });

  function order(request: KeeperOrder): Promise<KeeperResponse> {
    lastId += 1;
    const id = lastId;
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      socket.write(`${JSON.stringify({ ...request, id })}\n`);
    });
  }

  await order({ op: "status" });
  return {
    get protocol() {
      return protocol;
    },
    component: (name) => components.get(name),
    order,
    subscribe(onChange) {
      listeners.add(onChange);
      return {
        close: () => {
          listeners.delete(onChange);
        },
      };
    },
    onHandover(listener) {
      handoverListeners.add(listener);
      return {
        close: () => {
          handoverListeners.delete(listener);
        },
      };
    },
    close() {
      closed = true;
      socket.destroy();
    },
  };
}

/** Connects with retries, since tests and developers may start an agent before its keeper listens. */
async function dial(path: string, signal: AbortSignal): Promise<Socket> {
  for (let waitedMs = 0; ; waitedMs += retryMs) {
    const socket = connect(path);
    const refused = await new Promise<Error | undefined>((resolve) => {
      socket.once("connect", () => resolve(undefined));
      socket.on("error", resolve);
    });
    if (refused === undefined) return socket;
    if (waitedMs >= maxWaitMs) throw refused;
    await sleep(retryMs, undefined, { signal });
  }
}

export type { ComponentSpec, ComponentStatus };
