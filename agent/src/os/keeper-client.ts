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

export type KeeperAnswer = Pick<Extract<KeeperReply, { ok: true }>, "gapMs">;
type WithoutId<R> = R extends KeeperRequest ? Omit<R, "id"> : never;
export type KeeperOrder = WithoutId<KeeperRequest>;

/** What the keeper says of a change of agents. */
export type SuccessionEvent = Exclude<KeeperEvent, { event: "component" }>;

/** The machine's keeper, which outlives this agent and holds what runs. */
export interface KeeperClient {
  /** Version of what it understands: see keeper-protocol.ts. */
  readonly protocol: number;
  /** What the keeper last said of a component; undefined for one that it never had. */
  component(name: string): ComponentStatus | undefined;
  /** Resolves when the keeper did it; rejects with its words. */
  order(order: KeeperOrder): Promise<KeeperAnswer>;
  /** Calls back when a component changed. */
  subscribe(onChange: (component: ComponentStatus) => void): { close(): void };
  /** Calls back with what the keeper says of a change of agents to this one. */
  onSuccession(listener: (event: SuccessionEvent) => void): { close(): void };
  close(): void;
}

/** The states of one run. */
const inTurn: readonly ComponentStatus["state"][] = ["running", "stopping", "empty"];
const retryMs = 50;
const longestWaitMs = 10_000;

/** Resolves when the keeper told the status of all components. `onLost` is called when the keeper is gone: so is the machine. */
export async function connectKeeper(path: string, onLost: () => void, signal: AbortSignal): Promise<KeeperClient> {
  const socket = await dial(path, signal);
  const components = new Map<string, ComponentStatus>();
  const listeners = new Set<(component: ComponentStatus) => void>();
  const successionListeners = new Set<(event: SuccessionEvent) => void>();
  const waiting = new Map<number, { resolve(answer: KeeperAnswer): void; reject(error: Error): void }>();
  let protocol = 1;
  let lastId = 0;
  let closed = false;

  function learn(component: ComponentStatus): void {
    components.set(component.name, component);
    for (const listener of listeners) listener(component);
  }

  /** An answer was put together a moment before it was sent: what ended in that moment was told of before it. */
  function isNews({ name, starts, state }: ComponentStatus): boolean {
    const known = components.get(name);
    if (known === undefined || starts !== known.starts) return starts > (known?.starts ?? -1);
    return inTurn.indexOf(state) >= inTurn.indexOf(known.state);
  }

  createInterface({ input: socket }).on("line", (line) => {
    const message = JSON.parse(line) as KeeperReply | KeeperEvent;
    if ("event" in message) {
      if (message.event === "component") learn(message.component);
      else for (const listener of successionListeners) listener(message);
      return;
    }
    const asker = waiting.get(message.id);
    waiting.delete(message.id);
    if (!message.ok) {
      asker?.reject(new Error(message.error));
      return;
    }
    for (const component of message.components) if (isNews(component)) components.set(component.name, component);
    protocol = message.protocol ?? 1;
    asker?.resolve(message.gapMs === undefined ? {} : { gapMs: message.gapMs });
  });
  socket.on("close", () => {
    for (const { reject } of waiting.values()) reject(new Error("the keeper is gone"));
    waiting.clear();
    if (!closed) onLost();
  });

  function order(wanted: KeeperOrder): Promise<KeeperAnswer> {
    lastId += 1;
    const id = lastId;
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      socket.write(`${JSON.stringify({ ...wanted, id })}\n`);
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
    onSuccession(listener) {
      successionListeners.add(listener);
      return {
        close: () => {
          successionListeners.delete(listener);
        },
      };
    },
    close() {
      closed = true;
      socket.destroy();
    },
  };
}

/** The keeper listens before it starts the agent; a test or a person may be faster, but not for long. */
async function dial(path: string, signal: AbortSignal): Promise<Socket> {
  for (let waitedMs = 0; ; waitedMs += retryMs) {
    const socket = connect(path);
    const refused = await new Promise<Error | undefined>((resolve) => {
      socket.once("connect", () => resolve(undefined));
      socket.on("error", resolve);
    });
    if (refused === undefined) return socket;
    if (waitedMs >= longestWaitMs) throw refused;
    await sleep(retryMs, undefined, { signal });
  }
}

export type { ComponentSpec, ComponentStatus };
