import { WebSocket } from "undici";
import { incusUrl, type IncusEndpoint, unreachable } from "./incus-transport.ts";

/** One message of Incus's event stream, of the two subscribed types. */
export type IncusEvent =
  | { readonly type: "operation"; readonly metadata: OperationState }
  | { readonly type: "lifecycle"; readonly metadata: { readonly action: string; readonly name?: string } };

export interface OperationState {
  readonly id: string;
  /** Below 200 while it runs; 200 when it succeeded; above when it failed. */
  readonly status_code: number;
  readonly err: string;
  readonly resources: Readonly<Record<string, readonly string[]>> | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
}

export interface IncusEventListener {
  event(event: IncusEvent): void;
  /** The stream opened, for the first time or again; events during an interruption were missed. */
  opened(): void;
}

/** Incus's event stream; reopened whenever it ends, until it is closed. */
export interface IncusEvents {
  subscribe(listener: IncusEventListener): { close(): void };
  /** Resolves when the stream is open; rejects when Incus cannot be reached. */
  ready(signal: AbortSignal): Promise<void>;
  close(): void;
}

const reopenDelayMs = 250;

export function createIncusEvents(endpoint: IncusEndpoint): IncusEvents {
  const url = incusUrl("/1.0/events?type=operation,lifecycle", endpoint);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const listeners = new Set<IncusEventListener>();
  let closed = false;
  let socket: WebSocket | undefined;
  let opening: Promise<void> | undefined;
  let retry: NodeJS.Timeout | undefined;

  function open(): Promise<void> {
    opening ??= new Promise((resolve, reject) => {
      const current = new WebSocket(url, { dispatcher: endpoint.dispatcher });
      socket = current;
      current.binaryType = "arraybuffer";
      current.addEventListener("open", () => {
        resolve();
        for (const listener of listeners) listener.opened();
      });
      current.addEventListener("message", ({ data }) => {
        const text = typeof data === "string" ? data : Buffer.from(data as ArrayBuffer).toString("utf8");
        const event = JSON.parse(text) as IncusEvent;
        for (const listener of listeners) listener.event(event);
      });
      // A close event always follows an error.
      current.addEventListener("error", () => undefined);
      current.addEventListener("close", () => {
        opening = undefined;
        reject(unreachable("its event stream ended"));
        if (closed) return;
        retry = setTimeout(() => {
          open().catch(() => undefined);
        }, reopenDelayMs);
        retry.unref();
      });
    });
    return opening;
  }

  open().catch(() => undefined);
  return {
    subscribe(listener) {
      listeners.add(listener);
      return {
        close: () => {
          listeners.delete(listener);
        },
      };
    },
    async ready(signal) {
      signal.throwIfAborted();
      clearTimeout(retry);
      await open();
      signal.throwIfAborted();
    },
    close() {
      closed = true;
      clearTimeout(retry);
      listeners.clear();
      socket?.close();
    },
  };
}
