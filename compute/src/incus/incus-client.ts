import { basename } from "node:path";
import { request } from "undici";
import { dispatcherFor, type IncusAddress, originOf } from "./incus-address.ts";
import { createIncusEvents, type IncusEvents, type OperationState } from "./incus-events.ts";
import { createIncusTransport, incusUrl, IncusError, type IncusTransport, type Method } from "./incus-transport.ts";

/** Client of the Incus REST API. It does not poll: the end of an operation is an event. */
export interface IncusClient {
  /** Performs a read or a synchronous change; returns its metadata. */
  call<T>(method: Method, path: string, signal: AbortSignal, body?: object): Promise<T>;
  /** Text of a file that Incus serves, such as a log. */
  text(path: string, signal: AbortSignal): Promise<string>;
  /** Starts an operation and resolves with its result. When the signal fires, the operation continues. */
  run(
    method: Method,
    path: string,
    signal: AbortSignal,
    body?: object | AsyncIterable<Uint8Array>,
  ): Promise<OperationState>;
  /** Resolves when no operation works on the instance any more, including those whose caller stopped waiting. */
  settled(instance: string, signal: AbortSignal): Promise<void>;
  readonly events: IncusEvents;
  close(): Promise<void>;
}

/** Number of finished operations that are cached for responses that arrive after the event. */
const maxCachedResults = 512;
const recheckIntervalMs = 5_000;
const responseTimeoutMs = 30_000;

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
      if (ends.size <= maxCachedResults) break;
      ends.delete(id);
    }
  }

  events.subscribe({
    event(event) {
      if (event.type === "operation") settle(event.metadata);
    },
    opened() {
      // Operations that ended while the event stream was down.
      for (const id of waiting.keys()) readOperation(id, send).then(settle, () => undefined);
    },
  });

  async function end(id: string, signal: AbortSignal): Promise<OperationState> {
    const ended = ends.get(id);
    if (ended !== undefined) return ended;
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const waiters = waiting.get(id) ?? new Set();
      waiting.set(id, waiters);
      // The event ends the wait; the recheck finds operations whose event was lost while the stream was closed.
      const recheck = setInterval(() => {
        readOperation(id, send).then(settle, () => undefined);
      }, recheckIntervalMs);
      const waiter = (operation: OperationState) => {
        clearInterval(recheck);
        signal.removeEventListener("abort", abort);
        resolve(operation);
      };
      const abort = () => {
        clearInterval(recheck);
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
      const instanceOperations = Object.values(metadata ?? {})
        .flat()
        .filter(({ status_code, resources }) => status_code < 200 && names(resources).includes(instance));
      await Promise.all(
        instanceOperations.map(async ({ id }) => {
          const ended = end(id, signal);
          // The operation may have ended before the wait began.
          readOperation(id, send).then(settle, () => undefined);
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

async function readOperation(id: string, send: IncusTransport): Promise<OperationState> {
  try {
    return (await send<OperationState>("GET", `/1.0/operations/${id}`, AbortSignal.timeout(responseTimeoutMs)))
      .metadata;
  } catch (error) {
    if (!(error instanceof IncusError) || error.status !== 404) throw error;
    // Incus discards operations a few seconds after their end, and all of them at its restart.
    return { id, status_code: 410, err: "Incus lost the operation", resources: null, metadata: null };
  }
}

function names(resources: OperationState["resources"]): string[] {
  return (resources?.["instances"] ?? []).map((path) => basename(path.split("?")[0] ?? ""));
}

/** Resolves with any response of the daemon, also one that reports that it is not ready yet. */
export async function pingIncus(socket: string, signal: AbortSignal): Promise<void> {
  const address = { socket };
  const dispatcher = dispatcherFor(address);
  try {
    const { body } = await request(new URL("/1.0", originOf(address)), { dispatcher, signal });
    await body.dump();
  } finally {
    await dispatcher.destroy();
  }
}
