import type { Client } from "@holdfast/sdk/client.ts";
import { serviceOf } from "../events/event-view.ts";

/** The part of an event that pages need. */
export interface Change {
  readonly service: string | undefined;
}

type Listener = (change: Change) => void;

const listeners = new Set<Listener>();

/** Calls `listener` at each event of the organization; returns a function that removes it. */
export function onChange(listener: Listener): () => void {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}

function publish(change: Change): void {
  for (const listener of listeners) listener(change);
}

/**
 * Follows the organization's events until the signal aborts. One page of the browser holds the stream, by a lock, and
 * passes the events to the others.
 */
export function followChanges(client: Client, organization: string, signal: AbortSignal): void {
  const name = `holdfast events ${organization}`;
  const channel = new BroadcastChannel(name);
  channel.addEventListener("message", ({ data }: MessageEvent<Change>) => publish(data));
  signal.addEventListener("abort", () => channel.close());
  const follow = async () => {
    const since = new Date().toISOString();
    for await (const { data } of client.events.follow({ since }, { signal })) {
      const change: Change = { service: serviceOf(data) };
      publish(change);
      channel.postMessage(change);
    }
  };
  const run = () => navigator.locks.request(name, { signal }, follow);
  run().catch(() => {
    // The stream ended permanently, such as after the loss of a scope; pages still poll.
  });
}
