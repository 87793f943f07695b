import { basename } from "node:path";
import { request } from "undici";
import { dispatcherFor, type IncusAddress, originOf } from "./incus-address.ts";
import { createIncusEvents, type IncusEvents, type OperationState } from "./incus-events.ts";
import { createIncusTransport, incusUrl, IncusError, type IncusTransport, type Method } from "./incus-transport.ts";

/** Incus as this provider uses it. Nothing here polls: the end of an operation is an event. */
export interface IncusClient {
  /** A read, or a change that is made at once: its metadata. */
  call<T>(method: Method, path: string, signal: AbortSignal, body?: object): Promise<T>;
  /** The text of a file that Incus keeps, such as a log. */
  text(path: string, signal: AbortSignal): Promise<string>;
  /** Begins an operation and resolves at its end with what it left. When the signal fires, it goes on without us. */
  run(
    method: Method,
    path: string,
    signal: AbortSignal,
    body?: object | AsyncIterable<Uint8Array>,
  ): Promise<OperationState>;
  /** Resolves when no operation works on the instance any more: one that we gave up waiting for may. */
  settled(instance: string, signal: AbortSignal): Promise<void>;
  readonly events: IncusEvents;
  close(): Promise<void>;
}

/** So many ends of operations are kept for answers that arrive after the event. */
const endsKept = 512;
const lookAgainMs = 5_000;
const answerWithinMs = 30_000;

export function createIncusClient(address: IncusAddress, project: string): IncusClient {
  const dispatcher = dispatcherFor(address);
  const endpoint = { origin: originOf(address), project, dispatcher };
  const send = createIncusTransport(endpoint);
  const events = createIncusEvents(endpoint);
  const ends = new Map<string, OperationState>();
  const waiting = new Map<string, Set<(end: OperationState) => void>>();

  function settle(operation: OperationState): void {
    if (operation.status_code < 200) return;
    for (const waiter of waiting.get(operation.id) ?? []) waiter(operation);
    waiting.delete(operation.id);
    ends.set(operation.id, operation);
    for (const id of ends.keys()) {
      if (ends.size <= endsKept) break;
      ends.delete(id);
    }
  }

  events.subscribe({
    event(event) {
      if (event.type === "operation") settle(event.metadata);
    },
    opened() {
      // Ends that happened while nobody listened.
      for (const id of waiting.keys()) lookUp(id, send).then(settle, () => undefined);
    },
  });

  async function end(id: string, signal: AbortSignal): Promise<OperationState> {
    const known = ends.get(id);
    if (known !== undefined) return known;
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const waiters = waiting.get(id) ?? new Set();
      waiting.set(id, waiters);
      // The way is the event; a stream that ended and came back at the wrong moment must not leave us waiting for ever.
      const net = setInterval(() => {
        lookUp(id, send).then(settle, () => undefined);
      }, lookAgainMs);
      const waiter = (operation: OperationState) => {
        clearInterval(net);
        signal.removeEventListener("abort", abort);
        resolve(operation);
      };
      const abort = () => {
        clearInterval(net);
        waiters.delete(waiter);
        reject(signal.reason);
      };
      signal.addEventListener("abort", abort, { once: true });
      waiters.add(waiter);
    });
  }

  return {
    async call<T>(method: Method, path: string, signal: AbortSignal, body?: object): Promise<T> {
      return (await send<T>(method, path, signal, body)).metadata;
    },
    async text(path, signal) {
      const { body } = await request(incusUrl(path, endpoint), { dispatcher, signal });
      return body.text();
    },
    async run(method, path, signal, body) {
      await events.ready(signal);
      const { operation } = await send(method, path, signal, body);
      const ended = await end(basename(operation), signal);
      if (ended.err !== "") throw new IncusError(ended.status_code, ended.err);
      return ended;
    },
    async settled(instance, signal) {
      await events.ready(signal);
      const path = "/1.0/operations?recursion=1";
      const { metadata } = await send<Record<string, OperationState[]> | null>("GET", path, signal);
      const mine = Object.values(metadata ?? {})
        .flat()
        .filter(({ status_code, resources }) => status_code < 200 && names(resources).includes(instance));
      await Promise.all(
        mine.map(async ({ id }) => {
          const ended = end(id, signal);
          // It may have ended before we waited.
          lookUp(id, send).then(settle, () => undefined);
          await ended;
        }),
      );
    },
    events,
    async close() {
      events.close();
      await dispatcher.destroy();
    },
  };
}

async function lookUp(id: string, send: IncusTransport): Promise<OperationState> {
  try {
    return (await send<OperationState>("GET", `/1.0/operations/${id}`, AbortSignal.timeout(answerWithinMs))).metadata;
  } catch (error) {
    if (!(error instanceof IncusError) || error.status !== 404) throw error;
    // Incus forgets operations soon after their end, and all of them when it is restarted.
    return { id, status_code: 410, err: "Incus has lost sight of what it was doing", resources: null, metadata: null };
  }
}

function names(resources: OperationState["resources"]): string[] {
  return (resources?.["instances"] ?? []).map((path) => basename(path.split("?")[0] ?? ""));
}
